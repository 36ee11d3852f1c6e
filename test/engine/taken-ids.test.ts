import { describe, expect, test } from 'vitest';
import { type Event, type EventDraft, type EventId, isRuntimeId } from '../../src/events/index.ts';
import { inOrder, says } from '../support/engine-models.ts';
import { ANA, logOf, openStage, type Stage } from '../support/engine-stage.ts';
import { ID_PLAYS, logsOf } from '../support/id-plays.ts';

const EVE = { kind: 'user', id: 'eve', name: 'Eve' } as const;

/** An event that a client of an earlier version could store under an id of the runtime. Today's API refuses it. */
function squat(id: string): EventDraft {
  return { id: id as EventId, author: EVE, to: [], kind: 'message', body: { content: 'mine' } };
}

async function take(stage: Stage, conversation: string, ids: readonly string[]): Promise<void> {
  const entries = ids.map((id) => ({ draft: squat(id), at: 1, tokens: 1 }));
  await stage.store.append(logOf(conversation), entries);
}

/** Ids that an earlier version let clients use. */
function couldBeTaken(id: string): boolean {
  return /^compaction:|:(?:completed:|relief:|session:|compaction\.)/.test(id);
}

function kindsOf(logs: ReadonlyMap<string, readonly Event[]>): Record<string, string[]> {
  const own = (events: readonly Event[]) => events.filter(({ author }) => author.id !== EVE.id);
  return Object.fromEntries(
    [...logs].map(([id, events]) => [
      id,
      own(events)
        .map(({ kind }) => kind)
        .toSorted(),
    ]),
  );
}

describe.each(ID_PLAYS)('$name', (play) => {
  test('clients cannot take any id that the runtime creates', async () => {
    const stage = await play.open();
    await play.act(stage);
    const logs = await logsOf(stage);
    const minted = [...logs].flatMap(([conversation, events]) =>
      events.filter(({ author }) => author.kind !== 'user').map(({ id }) => [conversation, id] as const),
    );
    expect(minted.length).toBeGreaterThan(4);
    const early = await play.open();
    for (const [conversation, id] of minted) {
      expect(isRuntimeId(id)).toBe(true);
      const sent = early.troupe.send(conversation, { id, author: EVE, content: 'mine' });
      await expect(sent).rejects.toMatchObject({ code: 'event_conflict' });
    }
    expect(await logsOf(early)).toEqual(new Map());
  });

  test('if a client of an earlier version has taken ids, everything is published under spare ones', async () => {
    const free = await play.open();
    await play.act(free);
    const logs = await logsOf(free);
    const stage = await play.open();
    for (const [conversation, events] of logs)
      await take(stage, conversation, events.map(({ id }) => id).filter(couldBeTaken));
    await play.act(stage);
    const after = await logsOf(stage);
    expect(kindsOf(after)).toEqual(kindsOf(logs));
    for (const conversation of logs.keys()) {
      expect(await stage.check(conversation)).toEqual([]);
      for (const { status } of await stage.troupe.actors(conversation)) expect(status).not.toBe('failed');
    }
  });
});

test('the scenarios create every kind of id', async () => {
  const sorts = new Set<string>();
  for (const play of ID_PLAYS) {
    const stage = await play.open();
    await play.act(stage);
    for (const events of (await logsOf(stage)).values()) for (const { id } of events) sorts.add(sortOf(id));
  }
  expect([...sorts].toSorted()).toEqual(expect.arrayContaining(SORTS));
});

/** The words of an id, without names and numbers. */
function sortOf(id: string): string {
  return id
    .replace(/^c[^:]*:[a-z]+:\d+:/, 'TURN:')
    .replace(/[adq]-[0-9a-f]{12}/g, 'TASK')
    .replace(/:[\d.].*$/, '')
    .replace(/^(joined|baseline|remind):.*/, '$1');
}

const SORTS = [
  'TASK:end',
  'TASK:opened',
  'TURN:asked',
  'TURN:compaction.done',
  'TURN:compaction.started',
  'TURN:completed:TASK',
  'TURN:end',
  'TURN:handoff',
  'TURN:opened',
  'TURN:relief',
  'TURN:reply',
  'TURN:result',
  'TURN:session',
  'TURN:started',
  'TURN:step',
  'TURN:todos',
  'baseline',
  'compaction',
  'joined',
  'remind',
  'run:r1:directive',
  'run:r1:end',
  'run:r1:mode',
  'run:r1:phase',
  'run:r1:step',
];

test('an event that a client of an earlier version stored under such an id is answered as stored when it is sent again', async () => {
  const stage = await openStage({ agents: [{ id: 'bo', model: inOrder(says('here')) }] });
  await take(stage, 'c', ['order:7']);
  const before = await stage.events('c');
  const again = { id: 'order:7' as EventId, author: EVE, content: 'mine' };
  expect(await stage.troupe.send('c', again)).toMatchObject({ kind: 'exists', event: { seq: 1 } });
  for (const other of [
    { ...again, content: 'yours' },
    { ...again, author: ANA },
    { ...again, id: 'order:8' as EventId },
  ])
    await expect(stage.troupe.send('c', other)).rejects.toMatchObject({
      code: 'event_conflict',
      message: expect.stringContaining('order:'),
    });
  expect(await stage.events('c')).toEqual(before);
});
