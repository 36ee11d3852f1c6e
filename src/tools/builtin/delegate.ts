import * as z from 'zod';
import { Join } from '../../events/index.ts';
import { defineTool } from '../tool.ts';

export const WAITING = {
  wait: z
    .boolean()
    .default(true)
    .describe('Whether your turn ends here; the result wakes you either way. Default true.'),
  until: Join.default('all').describe(
    'Where you give several tasks at once: you are woken when all have ended, when the first has ended, or when any has a result. The others are then called off.',
  ),
  deadlineMinutes: z.number().positive().max(525_600).optional().describe('Called off after this long.'),
};

export function waitingOf({ wait, until, deadlineMinutes }: z.output<z.ZodObject<typeof WAITING>>) {
  return {
    wait,
    join: until,
    ...(deadlineMinutes !== undefined && { deadlineMs: deadlineMinutes * 60_000 }),
  };
}

/** Whether that agent exists and may be given this is the engine's to say. */
export const delegate = defineTool({
  name: 'delegate',
  description:
    'Gives a task to another agent, who sees the task alone and not this conversation. You are woken with its result. Several calls at once run side by side.',
  schema: z.object({
    to: z.string().min(1).describe('Id of the agent.'),
    task: z.string().min(1).describe('What to do, with everything that one must know for it.'),
    force: z.boolean().default(false).describe('Also if that agent waits for your work.'),
    ...WAITING,
  }),
  idempotent: true,
  run: ({ to, task, force, ...waiting }) => ({
    text: '',
    request: { kind: 'delegate', how: 'delegate', to, task, force, ...waitingOf(waiting) },
  }),
});
