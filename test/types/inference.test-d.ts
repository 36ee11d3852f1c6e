import { expectTypeOf } from 'vitest';
import * as z from 'zod';
import {
  type AgentInput,
  createTroupe,
  defineTool,
  defineTroupe,
  loadAgentsFile,
  type Troupe,
} from '../../src/index.ts';

const look = defineTool({ name: 'look', description: 'Looks.', schema: z.object({}), run: () => 'seen' });
const verdict = z.object({ verdict: z.enum(['yes', 'no']) });
const model = { provider: 'anthropic', model: 'claude-sonnet-5' } as const;

const troupe = await createTroupe({
  agents: [
    { id: 'coder', ...model, tools: ['look', 'todo', 'files/*'] },
    { id: 'judge', ...model, reply: verdict },
    { id: 'front', ...model, tools: ['handoff'] },
  ],
  tools: [look],
  mcpServers: { files: { command: 'files' } },
});
expectTypeOf(look.name).toEqualTypeOf<'look'>();
const plain: Troupe = troupe;
void plain;

// The ids of a definition are the only addressees.
await troupe.send('c', { author: { kind: 'user', id: 'u', name: 'U' }, to: ['coder', 'judge'], content: '' });
await troupe.ask('c', { to: ['coder'], content: '' });
troupe.stream('c', { to: ['coder'], content: '' });
const handle = troupe.conversation('c');
await handle.ask({ to: ['judge'], content: '' });
// @ts-expect-error There is no such agent.
await troupe.ask('c', { to: ['codr'], content: '' });
// @ts-expect-error There is no such agent.
troupe.stream('c', { to: ['codr'], content: '' });
// @ts-expect-error There is no such agent.
await troupe.send('c', { author: { kind: 'user', id: 'u', name: 'U' }, to: ['codr'], content: '' });
// @ts-expect-error There is no such agent.
await handle.ask({ to: ['codr'], content: '' });

// `data` has the type of the addressee's schema; after a hand-over, of any.
type Verdict = z.infer<typeof verdict>;
const judged = await troupe.ask('c', { to: ['judge'], content: '' });
expectTypeOf(judged.data).toEqualTypeOf<Verdict | undefined>();
expectTypeOf((await handle.ask({ to: ['judge'], content: '' })).data).toEqualTypeOf<Verdict | undefined>();
const coded = await troupe.ask('c', { to: ['coder'], content: '' });
expectTypeOf(coded.data).toEqualTypeOf<undefined>();
const passedOn = await troupe.ask('c', { to: ['front'], content: '' });
expectTypeOf(passedOn.data).toEqualTypeOf<Verdict | undefined>();
const anybody = await troupe.ask('c', 'hello');
expectTypeOf(anybody.data).toEqualTypeOf<Verdict | undefined>();

// `tools` of an agent hold names of tools that exist, and fields exist.
await createTroupe({
  tools: [look],
  // @ts-expect-error There is no such tool.
  agents: [{ id: 'coder', ...model, tools: ['lok'] }],
});
// @ts-expect-error There is no such field.
await createTroupe({ agents: [{ id: 'coder', ...model, instruction: 'Code.' }] });
// @ts-expect-error There is no such field.
await createTroupe({ agents: [{ id: 'coder', ...model }], limit: {} });
// @ts-expect-error A price is not a number.
await createTroupe({ agents: [{ id: 'coder', ...model, price: 3 }] });

// A definition apart from its troupe, and lists that are built at run time.
const apart = await createTroupe(defineTroupe({ agents: [{ id: 'coder', ...model }] }));
expectTypeOf<typeof apart.send>()
  .parameter(1)
  .extract<object>()
  .toHaveProperty('to')
  .toExtend<readonly 'coder'[] | undefined>();
const built = await createTroupe({ agents: ['a', 'b'].map((id) => ({ id, ...model })) });
expectTypeOf(built).toEqualTypeOf<Troupe>();
const loaded = await createTroupe(await loadAgentsFile('agents.json'));
expectTypeOf(loaded).toEqualTypeOf<Troupe>();
const agents: AgentInput[] = [];
expectTypeOf(await createTroupe({ agents })).toEqualTypeOf<Troupe>();
const spawning = await createTroupe({
  agents: [{ id: 'lead', ...model }],
  templates: [{ id: 'coder', ...model }],
});
expectTypeOf(spawning).toEqualTypeOf<Troupe>();
