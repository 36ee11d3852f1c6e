import { expect, test } from 'vitest';
import { hashText } from '../../src/context/index.ts';
import type { AgentId, Event, EventId } from '../../src/events/index.ts';
import { mortal } from '../support/engine-driver.ts';
import { asks, bytes, byStep, inOrder, modelOf, says } from '../support/engine-models.ts';
import { ANA, logOf, openStage, type Stage, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';
import { defineTool } from '../../src/tools/tool.ts';
import * as z from 'zod';

const adds = defineTool({ name: 'adds', description: 'a', schema: z.object({}), run: () => '2' });

function startOf(events: readonly Event[]): Event | undefined {
  return events.find(({ kind }) => kind === 'turn.started');
}

/** Gives an agent of a stage a dynamic fragment, as `buildCompany` does. */
function addFragment(stage: Stage, name: string, text: () => string | null): void {
  const member = stage.deps.agents.get('bo' as AgentId);
  if (!member) throw new Error('there is no @bo');
  member.profile.fragments = { rules: [], environment: [], live: [{ name, text }] };
}

test('a started turn names the frozen layers of its prompt, and each is stored under its hash', async () => {
  const stage = await openStage({ agents: [{ id: 'bo', model: inOrder(says('well')) }] });
  await stage.say('c', 'hello', ['bo']);
  await stage.quiet();
  const context = startOf(await stage.events('c'))?.context;
  const { layers } = await stage.troupe.promptOf('c:bo:1');
  for (const name of ['rules', 'persona', 'environment'] as const) {
    expect(context?.[name]).toBe(layers.find((layer) => layer.name === name)?.hash);
    const text = await stage.store.readBody(logOf('c').tenant, context?.[name] ?? '');
    expect(hashText(text ?? '')).toBe(context?.[name]);
  }
  expect(context).not.toHaveProperty('mode');
});

test('a turn resumed by another process keeps the first texts of its fragments, though they have changed', async () => {
  const inner = await openDriver();
  const first = mortal(inner);
  const hung = modelOf(async function* ({ trace }) {
    if (trace.step === 2) await new Promise(() => undefined);
    yield* asks(['adds', {}]);
  });
  const agents = { tools: [adds] };
  const killed = await openStage({
    ...agents,
    driver: first.driver,
    agents: [{ id: 'bo', model: hung, tools: ['adds'] }],
  });
  addFragment(killed, 'weather', () => 'rain');
  await killed.say('c', 'go', ['bo']);
  await until('the second step', () => hung.requests.length === 2);
  first.kill();
  const model = byStep(says('never asked'), says('done'));
  const stage = await openStage({ ...agents, driver: inner, agents: [{ id: 'bo', model, tools: ['adds'] }] });
  addFragment(stage, 'weather', () => 'sun');
  await stage.quiet();
  expect(bytes(model.requests[0])).toBe(bytes(hung.requests[1]));
  const events = await stage.events('c');
  expect(startOf(events)?.context?.fragments).toEqual({ weather: hashText('rain') });
  expect(await stage.check('c')).toEqual([]);
});

test('attachments are stored with their message and are part of its payload', async () => {
  const driver = await openDriver();
  const stage = await openStage({ driver, agents: [{ id: 'bo', model: inOrder(says('-')) }] });
  const message = { id: 'm1' as EventId, author: ANA, content: 'see this' };
  const context = { attachments: ['photo-1', 'photo-2'] };
  expect((await stage.troupe.send('c', { ...message, context })).kind).toBe('appended');
  expect((await stage.troupe.send('c', { ...message, context })).kind).toBe('exists');
  await expect(stage.troupe.send('c', message)).rejects.toMatchObject({ code: 'event_conflict' });
  const other = { attachments: ['photo-2', 'photo-1'] };
  await expect(stage.troupe.send('c', { ...message, context: other })).rejects.toMatchObject({
    code: 'event_conflict',
  });
  const again = await openStage({ driver, agents: [{ id: 'bo', model: inOrder(says('-')) }] });
  expect((await again.events('c'))[0]?.context).toEqual({ ...context, channel: 'library' });
});

test('an export carries the context of its events, and a second import changes nothing', async () => {
  const source = await openStage({ agents: [{ id: 'bo', model: inOrder(says('well')) }] });
  await source.troupe.send('c', {
    author: ANA,
    to: ['bo'],
    content: 'see this',
    context: { attachments: ['photo-1'] },
  });
  await source.quiet();
  let lines = '';
  for await (const line of source.troupe.export('c')) lines += line;
  const target = await openStage({ agents: [{ id: 'bo', model: inOrder(says('well')) }] });
  for (let round = 0; round < 2; round++) {
    async function* chunks() {
      yield lines;
    }
    const { skipped } = await target.troupe.import(chunks(), { conversation: 'c' });
    expect(skipped).toEqual([]);
  }
  const contexts = async (stage: Stage) => (await stage.events('c')).map(({ context }) => context);
  const brought = (await contexts(source)).map((context) => ({ ...context, imported: true }));
  expect(await contexts(target)).toEqual(brought);
  expect((await contexts(source)).filter(Boolean)).toHaveLength(2);
});

test('messages and replies name the mode and the run in force, and one sent again in another mode is the stored one', async () => {
  const stage = await openStage({ agents: [{ id: 'bo', model: inOrder(says('a'), says('b'), says('c')) }] });
  const at = { conversation: 'c' as never };
  await stage.say('c', 'one', ['bo'], 'm1');
  await stage.quiet();
  await stage.troupe.command({ command: 'mode', ...at, mode: 'chat' }, ANA);
  await stage.say('c', 'two', ['bo']);
  await stage.quiet();
  await stage.troupe.command(
    { command: 'directive', ...at, run: 'r1', directive: 'ship it', status: 'active' },
    ANA,
  );
  await stage.troupe.command({ command: 'mode', ...at, mode: 'run', run: 'r1' }, ANA);
  await stage.say('c', 'three', ['bo']);
  await stage.quiet();
  const messages = (await stage.events('c')).filter(({ kind }) => kind === 'message');
  const modes = messages.map(({ context }) => [context?.mode ?? null, context?.run ?? null]);
  expect(modes).toEqual([
    [null, null],
    [null, null],
    ['chat', null],
    ['chat', null],
    ['run', 'r1'],
    ['run', 'r1'],
  ]);
  const again = { id: 'm1' as EventId, author: ANA, content: 'one', to: ['bo'] };
  expect((await stage.troupe.send('c', again)).kind).toBe('exists');
  expect(await stage.check('c')).toEqual([]);
});

test('a started turn names its tools by what a call of them needs, at most 64', async () => {
  const tool = (name: string, needsApproval = false) =>
    defineTool({ name, description: 'x', schema: z.object({}), needsApproval, run: () => 'x' });
  const many = Array.from({ length: 70 }, (_, n) => tool(`t${String(n).padStart(2, '0')}`));
  const stage = await openStage({
    tools: [tool('deploy', true), ...many],
    agents: [
      { id: 'bo', model: inOrder(says('a')), tools: ['deploy', 't00'] },
      { id: 'cy', model: inOrder(says('a')), tools: ['deploy', ...many.map(({ name }) => name)] },
      { id: 'di', model: inOrder(says('a')) },
    ],
  });
  await stage.say('c', 'hi', ['bo', 'cy', 'di']);
  await stage.quiet();
  const sets = new Map(
    (await stage.events('c'))
      .filter(({ kind }) => kind === 'turn.started')
      .map(({ author, context }) => [author.id, context?.toolset]),
  );
  expect(sets.get('bo')).toEqual({ free: ['read_artifact', 't00'], approval: ['deploy'] });
  const { free = [], approval = [], more } = sets.get('cy') ?? {};
  expect([free.length + approval.length, more]).toEqual([64, 8]);
  expect(approval).toEqual(['deploy']);
  expect(sets.get('di')).toBeUndefined();
});
