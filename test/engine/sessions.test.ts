import { expect, test } from 'vitest';
import type { ModelEvent, ModelRequest } from '../../src/providers/provider.ts';
import {
  createFakeSessions,
  type FakeSessionsOptions,
  newSessionMemory,
  type SeenCall,
} from '../../packages/testing/src/fake-sessions.ts';
import { defineTool } from '../../src/tools/tool.ts';
import * as z from 'zod';
import { asks, breaks, modelOf, says } from '../support/engine-models.ts';
import { openStage, type Stage, type StageOptions } from '../support/engine-stage.ts';
import { fill, SMALL } from '../support/compaction-stage.ts';

type Hears = (request: ModelRequest) => ModelEvent[];

function answered(answer: Hears = () => says('ok')): FakeSessionsOptions['answer'] {
  return (request, signal) =>
    modelOf(async function* () {
      yield* answer(request);
    }).stream(request, { signal });
}

interface Setting extends Partial<FakeSessionsOptions> {
  hears?: Hears;
  options?: Partial<StageOptions>;
  agent?: Partial<StageOptions['agents'][number]>;
}

async function open({ hears, options, agent, ...more }: Setting = {}) {
  const memory = more.memory ?? newSessionMemory();
  const model = createFakeSessions({ answer: answered(hears), ...more, memory });
  const stage = await openStage({ agents: [{ id: 'bo', model, ...agent }], ...options });
  return { stage, memory, seen: memory.seen };
}

async function ask(stage: Stage, content: string): Promise<void> {
  await stage.say('c', content, ['bo']);
  await stage.quiet();
}

/** What the log tells of sessions, with its reasons. */
async function told(stage: Stage): Promise<string[]> {
  return (await stage.events('c')).flatMap((event) =>
    event.kind === 'session.changed' ? [`${event.body.change} ${event.body.reason ?? ''}`.trim()] : [],
  );
}

function sent(call: SeenCall | undefined): string {
  return (call?.sent ?? []).map(({ content }) => content).join('\n');
}

test('the first turn sends everything, the next only what the session has not seen', async () => {
  const { stage, seen } = await open({ hears: ({ trace }) => says(`said in ${trace.turn}`) });
  await ask(stage, 'one');
  await stage.say('c', 'by the way', []);
  await ask(stage, 'two');
  expect(seen.map(({ change }) => change)).toEqual(['started', 'resumed']);
  expect(seen[0]?.sent[0]?.role).toBe('system');
  expect(seen[1]?.sent.every(({ role }) => role === 'user')).toBe(true);
  expect(sent(seen[1])).toContain('by the way');
  expect(sent(seen[1])).not.toContain('one');
  expect(sent(seen[1])).not.toContain('said in');
  expect(await told(stage)).toEqual(['started first', 'resumed']);
});

test('the actor names its session and cursor, and the prompt record is a delta with both of its ends', async () => {
  const { stage } = await open();
  await ask(stage, 'one');
  const { session, cursor } = await stage.actor('c', 'bo');
  expect(session).toMatchObject({ provider: 'scripted', state: 'ok', turn: 'c:bo:1' });
  expect(cursor).toBe(1);
  await ask(stage, 'two');
  const first = await stage.troupe.promptOf('c:bo:1');
  const second = await stage.troupe.promptOf('c:bo:2');
  expect(first).toMatchObject({ mode: 'full', verified: true });
  expect(second).toMatchObject({ mode: 'delta', verified: true, cursor: { before: 1 } });
  expect(second.layers.map(({ stability }) => stability)).not.toContain('epoch');
  expect(second.tokens.total).toBeLessThan(first.tokens.total);
});

test('the next prompt is shown as its session would receive it', async () => {
  const { stage } = await open();
  await ask(stage, 'one');
  await stage.say('c', 'and this', []);
  const next = await stage.troupe.prompt('c', 'bo');
  expect(next.mode).toBe('delta');
  expect(next.messages.map(({ content }) => content).join('\n')).toContain('and this');
  expect(next.messages.map(({ content }) => content).join('\n')).not.toContain('one');
});

const add = defineTool({
  name: 'add',
  description: 'adds',
  schema: z.object({ a: z.number() }),
  run: async ({ a }) => `sum ${a}`,
});

test('results of calls go to the turn that waits for them, and nothing else does', async () => {
  const { stage, seen } = await open({
    hears: ({ trace }) => (trace.step === 1 ? asks(['add', { a: 1 }], ['add', { a: 2 }]) : says('3')),
    options: { tools: [add] },
    agent: { tools: ['add'] },
  });
  await ask(stage, 'one');
  expect(seen.map(({ change }) => change)).toEqual(['started', 'continued']);
  expect(seen[1]?.sent).toMatchObject([
    { role: 'tool', content: 'sum 1' },
    { role: 'tool', content: 'sum 2' },
  ]);
});

test('a failed call is retried from the former end of the session', async () => {
  let failures = 1;
  const { stage, seen } = await open({
    hears: ({ trace }) =>
      trace.turn === 'c:bo:2' && failures-- > 0 ? breaks('provider_overloaded', 'half') : says('ok'),
  });
  await ask(stage, 'one');
  await ask(stage, 'two');
  expect(seen.map(({ change }) => change)).toEqual(['started', 'resumed', 'rewound']);
  expect(sent(seen[1])).toBe(sent(seen[2]));
  expect(seen[2]?.transcript.filter((text) => text.includes('two'))).toHaveLength(1);
});

test('a provider that cannot rewind gets a new session with everything after a failure', async () => {
  let failures = 1;
  const { stage, seen } = await open({
    rewind: false,
    hears: ({ trace }) =>
      trace.turn === 'c:bo:2' && failures-- > 0 ? breaks('provider_overloaded') : says('ok'),
  });
  await ask(stage, 'one');
  await ask(stage, 'two');
  await ask(stage, 'three');
  expect(seen.map(({ change }) => change)).toEqual(['started', 'resumed', 'started', 'resumed']);
  expect(sent(seen[2])).toContain('one');
  expect(await told(stage)).toEqual(['started first', 'resumed', 'rebuilt unknown', 'resumed']);
});

test('a session that the provider lost is reported, and a new one gets everything within the same turn', async () => {
  const { stage, seen, memory } = await open();
  await ask(stage, 'one');
  memory.sessions.clear();
  await ask(stage, 'two');
  expect(seen.map(({ change }) => change)).toEqual(['started', 'started']);
  expect(sent(seen[1])).toContain('one');
  expect(await told(stage)).toEqual(['started first', 'lost lost', 'rebuilt lost']);
  expect((await stage.events('c')).filter(({ kind }) => kind === 'error')).toEqual([]);
  expect(await stage.check('c')).toEqual([]);
});

test('on another machine the session is not resumed', async () => {
  const memory = newSessionMemory();
  const { stage } = await open({ memory, home: 'here' });
  await ask(stage, 'one');
  const there = await open({ memory, home: 'there', options: { driver: stage.driver } });
  await ask(there.stage, 'two');
  expect(memory.seen.map(({ change }) => change)).toEqual(['started', 'started']);
  expect(await told(there.stage)).toEqual(['started first', 'rebuilt elsewhere']);
});

test('a compacted view is sent whole to a new session', async () => {
  const { stage, seen } = await open({ agent: SMALL });
  await ask(stage, 'one');
  await fill(stage, 20);
  await ask(stage, 'two');
  expect(seen.filter(({ trace }) => trace.purpose !== 'compaction').map(({ change }) => change)).toEqual([
    'started',
    'started',
  ]);
  expect(await told(stage)).toContain('rebuilt baseline');
  expect(await stage.check('c')).toEqual([]);
});

test('a session that its provider has compacted continues', async () => {
  const hears: Hears = ({ trace }) =>
    trace.turn === 'c:bo:2' ? [{ type: 'start' }, { type: 'compacted' }, ...says('ok').slice(1)] : says('ok');
  const kept = await open({ hears });
  for (const text of ['one', 'two', 'three']) await ask(kept.stage, text);
  expect(kept.seen.map(({ change }) => change)).toEqual(['started', 'resumed', 'resumed']);
  expect(await told(kept.stage)).toContain('compacted');
});

test('two conversations of one agent never share a session', async () => {
  const { stage, seen } = await open();
  await ask(stage, 'one');
  await stage.say('d', 'secret of d', ['bo']);
  await stage.quiet();
  await ask(stage, 'two');
  expect(new Set(seen.map(({ session }) => session)).size).toBe(2);
  expect(seen.at(-1)?.transcript.join('\n')).not.toContain('secret of d');
});

test('fifty turns cost a twentieth of the input that the whole history would', async () => {
  const { stage, seen } = await open({
    hears: () => says('a rather long answer, as models give them. '.repeat(10)),
  });
  let whole = 0;
  for (let turn = 1; turn <= 50; turn++) {
    await ask(stage, `question ${turn}: ${'what of it? '.repeat(10)}`);
    whole += (seen.at(-1)?.transcript.join('\n') ?? '').length;
  }
  const delta = seen.reduce((sum, call) => sum + sent(call).length, 0);
  console.log(`50 turns: ${delta} characters sent, ${((100 * delta) / whole).toFixed(1)} % of ${whole}`);
  expect(delta / whole).toBeLessThan(0.05);
});

test('an unusable provider makes its agent fail with the turn pinned, and leaves the others alone', async () => {
  let isInstalled = false;
  const { stage } = await open({
    hears: () => (isInstalled ? says('here') : breaks('provider_unusable')),
  });
  await ask(stage, 'one');
  expect(await stage.actor('c', 'bo')).toMatchObject({ parked: 'failed' });
  expect((await stage.events('c')).at(-1)).toMatchObject({
    kind: 'error',
    body: { code: 'provider_unusable' },
  });
  isInstalled = true;
  await stage.troupe.command(
    { command: 'resume', conversation: 'c' as never, agent: 'bo' as never },
    {
      kind: 'user',
      id: 'u',
      name: 'U',
    },
  );
  await stage.quiet();
  expect((await stage.events('c')).filter(({ kind }) => kind === 'message')).toHaveLength(2);
});
