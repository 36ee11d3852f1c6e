import * as z from 'zod';
import { createTroupe, defineTool, defineTroupe, type ToolContext } from '../../src/index.ts';

interface Db {
  db: { find(id: string): string };
}
interface Mail {
  mail: { send(text: string): void };
}
const schema = z.object({ id: z.string() });
const find = defineTool({
  name: 'find',
  description: 'Finds.',
  schema,
  needs: ['db'],
  run: ({ id }, { app }: ToolContext<Db>) => app.db.find(id),
});
const send = defineTool({
  name: 'send',
  description: 'Sends.',
  schema,
  needs: ['mail'],
  run({ id }, { app, forTools }: ToolContext<Mail, { locale: string }>) {
    app.mail.send(`${id} ${forTools?.locale}`);
  },
});
const add = defineTool({ name: 'add', description: 'Adds.', schema, run: ({ id }) => id });

const model = { provider: 'anthropic', model: 'claude-sonnet-5' } as const;
const agents = [{ id: 'bo', ...model, tools: ['find', 'send', 'add'] }] as const;
const db = { find: (id: string) => id };
const mail = { send: (text: string) => void text };

// A tool that takes the type of `app` names what it needs of it.
// @ts-expect-error `needs` is missing.
defineTool({ name: 'look', description: '', schema, run: (_, { app }: ToolContext<Db>) => app.db.find('') });
defineTool({
  name: 'look',
  description: '',
  schema,
  // @ts-expect-error There is no `bd`.
  needs: ['bd'],
  run: (_, { app }: ToolContext<Db>) => app.db.find(''),
});

// What all tools need together is asked of `app`.
const app = async () => ({ db, mail, more: 1 });
const troupe = defineTroupe({ app, agents, tools: [find, send, add] });
await createTroupe(troupe);
await createTroupe(troupe, { data: '.troupe' });
await createTroupe(troupe, { app: { db, mail } });
await createTroupe({ app, agents, tools: [find, send, add] });
await createTroupe({ agents, tools: [find, send, add] }, { app: { db, mail } });
await createTroupe({ agents: [{ id: 'bo', ...model, tools: ['add'] }], tools: [add] });
defineTroupe({ agents: [{ id: 'bo', ...model, tools: ['add'] }], tools: [add] });
defineTroupe({ agents: [{ id: 'bo', ...model }] });

// @ts-expect-error `app` is missing.
defineTroupe({ agents, tools: [find, send, add] });
// @ts-expect-error `mail` is missing in it.
defineTroupe({ app: () => ({ db }), agents, tools: [find, send, add] });
// @ts-expect-error `db` has another type.
defineTroupe({ app: async () => ({ db: 1, mail }), agents, tools: [find, send, add] });
// @ts-expect-error `app` is a function.
defineTroupe({ app: { db, mail }, agents, tools: [find, send, add] });
// @ts-expect-error `app` is missing.
await createTroupe({ agents, tools: [find, send, add] });
// @ts-expect-error `app` is missing.
await createTroupe({ agents, tools: [find, send, add] }, { data: '.troupe' });
// @ts-expect-error `db` is missing in it.
await createTroupe({ agents, tools: [find, send, add] }, { app: { mail } });
// @ts-expect-error There is no such tool.
defineTroupe({ app, agents: [{ id: 'bo', ...model, tools: ['fnd'] }], tools: [find, send, add] });
