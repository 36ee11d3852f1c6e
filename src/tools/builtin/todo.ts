import * as z from 'zod';
import { TodoItem } from '../../events/index.ts';
import { defineTool } from '../tool.ts';

export const todo = defineTool({
  name: 'todo',
  description:
    'Keeps your list of what is to be done: give the whole list each time. You are held to it: a turn does not end while something is pending, unless you wait for others or say `later`.',
  schema: z.object({
    items: z.array(TodoItem).max(100),
    later: z.boolean().default(false).describe('The list is only set up; it is worked on another time.'),
  }),
  idempotent: true,
  run({ items, later }) {
    const left = items.filter(({ status }) => status === 'pending' || status === 'active').length;
    return {
      text: `${items.length} items, ${left} to be done`,
      request: { kind: 'todos', items, later },
    };
  },
});
