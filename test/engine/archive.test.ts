import { expect, test } from 'vitest';
import type { ConversationId, Event } from '../../src/events/index.ts';
import { asks, inOrder, modelOf, says } from '../support/engine-models.ts';
import { ANA, logOf, openStage, type Stage } from '../support/engine-stage.ts';

const C = 'c' as ConversationId;
const DAY_MS = 86_400_000;

async function opened(lifecycle?: { archiveAfterMs?: number; deleteAfterMs?: number }): Promise<Stage> {
  return openStage({
    agents: [
      { id: 'bo', model: inOrder(says('one'), says('two')) },
      { id: 'di', model: inOrder(asks(['ask', { question: 'which?' }]), says('that')), tools: ['ask'] },
    ],
    ...(lifecycle && { lifecycle }),
  });
}

async function pass(stage: Stage, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 3_600_000) await stage.clock.advance(Math.min(left, 3_600_000));
  await stage.quiet();
}

function commands(events: readonly Event[]): string[] {
  return events.flatMap(({ kind, body }) => (kind === 'command' ? [body.command] : []));
}

test("a person's message reopens an archived conversation in its former mode", async () => {
  const stage = await opened();
  await stage.say('c', 'x', ['bo']);
  await stage.quiet();
  await stage.troupe.command({ command: 'mode', conversation: C, mode: 'chat' }, ANA);
  await stage.troupe.command({ command: 'archive', conversation: C, reason: 'done' }, ANA);
  expect((await stage.troupe.state('c')).state).toBe('archived');
  const agent = { kind: 'agent', id: 'di', name: 'di' } as const;
  await expect(stage.troupe.send('c', { author: agent, content: 'psst' })).rejects.toMatchObject({
    code: 'conversation_archived',
    policy: 'fix_input',
  });
  const said = { id: 'm9' as Event['id'], author: ANA, to: ['bo'], content: 'one more thing' };
  await stage.troupe.send('c', said);
  await stage.quiet();
  const events = await stage.events('c');
  expect(commands(events)).toEqual(['archive', 'reopen']);
  expect(events.find(({ kind, body }) => kind === 'command' && body.command === 'reopen')?.seq).toBe(
    (events.find(({ id }) => id === 'm9')?.seq ?? 0) - 1,
  );
  expect((await stage.troupe.state('c')).state).toBe('open.chat');
  await stage.troupe.command({ command: 'archive', conversation: C }, ANA);
  expect((await stage.troupe.send('c', said)).kind).toBe('exists');
  expect((await stage.troupe.state('c')).state).toBe('archived');
  expect(await stage.check('c')).toEqual([]);
});

test('a quiet conversation is archived once and deleted later, unless it has open work', async () => {
  const stage = await opened({ archiveAfterMs: DAY_MS, deleteAfterMs: 3 * DAY_MS });
  await stage.say('c', 'x', ['bo']);
  await stage.say('waits', 'x', ['di']);
  await stage.quiet();
  await pass(stage, DAY_MS / 2);
  expect(commands(await stage.events('c'))).not.toContain('archive');
  await pass(stage, DAY_MS);
  expect(commands(await stage.events('c'))).toEqual(['archive']);
  expect(commands(await stage.events('waits'))).not.toContain('archive');
  await pass(stage, 4 * DAY_MS);
  expect(await stage.store.head(logOf('c'))).toBe(0);
  expect(await stage.store.listActors(logOf('c'))).toEqual([]);
  expect(await stage.store.head(logOf('waits'))).toBeGreaterThan(0);
  expect(stage.warnings).toEqual([]);
});

test('without settings nothing is archived or deleted', async () => {
  const stage = await opened();
  await stage.say('c', 'x', ['bo']);
  await stage.quiet();
  await pass(stage, 3 * DAY_MS);
  expect(commands(await stage.events('c'))).not.toContain('archive');
});

test('a conversation is deleted with its threads once it is exported and idle', async () => {
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const plan = inOrder(asks(['delegate', { to: 'cy', task: 'count' }]), says('seven'), says('a new start'));
  const model = modelOf(async function* (request, signal) {
    begun.resolve();
    await goOn.promise;
    yield* plan.stream(request, { signal });
  });
  const stage = await openStage({
    agents: [
      { id: 'bo', model, tools: ['delegate'] },
      { id: 'cy', model: inOrder(says('7')) },
    ],
  });
  await stage.say('c', 'count', ['bo']);
  await begun.promise;
  await expect(stage.troupe.delete('c', { exported: 'none' })).rejects.toMatchObject({
    code: 'command_refused',
    data: { agent: 'bo' },
  });
  goOn.resolve();
  await stage.quiet();
  const lines: string[] = [];
  for await (const line of stage.troupe.export('c', { threads: true })) lines.push(line);
  const heads = lines.filter((line) => line.startsWith('{"troupe"'));
  expect(heads).toHaveLength(2);
  const opening = (await stage.events('c')).find((event) => event.kind === 'delegation.opened');
  const thread = opening?.kind === 'delegation.opened' ? opening.body.thread : '';
  const kept = lines.length - heads.length;
  expect(kept).toBe((await stage.events('c')).length + (await stage.events(thread)).length);
  await expect(stage.troupe.delete('c', { exported: kept - 1 })).rejects.toMatchObject({
    code: 'command_refused',
    data: { events: kept },
  });
  expect(await stage.troupe.delete('c', { exported: kept })).toEqual({
    conversations: 2,
    events: kept,
    actors: 2,
  });
  expect([await stage.store.head(logOf('c')), await stage.store.head(logOf(thread))]).toEqual([0, 0]);
  await expect(stage.troupe.events('c')).rejects.toMatchObject({ code: 'conversation_unknown' });
  await stage.say('c', 'again', ['bo']);
  await stage.quiet();
  const events = await stage.events('c');
  expect(events[0]).toMatchObject({ seq: 1, body: { content: 'again' } });
  expect(JSON.stringify(events)).toContain('a new start');
  expect(await stage.check('c')).toEqual([]);
});
