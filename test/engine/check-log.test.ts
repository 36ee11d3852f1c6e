import { beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import type { ActorRecord, Event, TurnId } from '../../src/events/index.ts';
import { checkLog, type CheckOptions, type Invariant } from '../../packages/testing/src/check-log.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { asks, byStep, inOrder, says } from '../support/engine-models.ts';
import { openStage } from '../support/engine-stage.ts';

/**
 * A legal log, which the tests then break in every way: a message to bo, a tool call of bo, a handoff to cy, an
 * answer of cy.
 */
interface History {
  events: Event[];
  actors: ActorRecord[];
}
let good: History;

beforeAll(async () => {
  const note = defineTool({ name: 'note', description: 'n', schema: z.object({}), run: () => 'noted' });
  const handoff: [string, unknown] = ['handoff', { to: 'cy', goal: 'go on' }];
  const stage = await openStage({
    tools: [note],
    agents: [
      { id: 'bo', model: byStep(asks(['note', {}]), asks(handoff)), tools: ['note', 'handoff'] },
      { id: 'cy', model: inOrder(says('taken')) },
    ],
  });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  good = {
    events: await stage.events('c'),
    actors: [await stage.actor('c', 'bo'), await stage.actor('c', 'cy')],
  };
});

function at(history: History, id: string): Event {
  const event = history.events.find((each) => each.id === id);
  if (!event) throw new Error(`no ${id} in ${history.events.map((each) => each.id).join(' ')}`);
  return event;
}

function cover(history: History, id: string, covers: number[]): void {
  const event = at(history, id);
  if (event.kind === 'turn.done' || event.kind === 'turn.aborted') event.body.covers = covers;
}

/** Moves the event to the end of the log, or appends a copy of it under another id. */
function atEnd(history: History, event: Event, id?: string): void {
  if (id === undefined) {
    history.events = history.events.filter((each) => each !== event);
    for (const [index, each] of history.events.entries()) each.seq = index + 1;
  }
  history.events.push({
    ...structuredClone(event),
    seq: history.events.length + 1,
    ...(id && { id: id as Event['id'] }),
  });
}

function retry(history: History, turn: string, agent: string): void {
  const body = { command: 'retry', agent, turn };
  const event = { ...at(history, 'joined:cy'), kind: 'command', to: [agent], body } as Event;
  atEnd(history, event, `${turn}:retry`);
}

function actor(history: History, agent: string): ActorRecord {
  return history.actors.find((each) => each.agent === agent) as ActorRecord;
}

const CANCELLED: CheckOptions = { cancelled: ['c:cy:1'] };

const SPOILT: [string, Invariant, (history: History) => void, CheckOptions?][] = [
  ['a gap in seq', 'I1', ({ events }) => void events.splice(3, 1)],
  ['a seq used twice', 'I1', ({ events }) => void ((events[3] as Event).seq = 3)],
  ['one id twice', 'I1', (history) => atEnd(history, at(history, 'c:cy:1:reply'), 'joined:cy')],
  ['an input that nobody answered', 'I2', (history) => cover(history, 'c:bo:1:end', [])],
  [
    'an input answered twice',
    'I2',
    (history) => {
      const again = structuredClone(at(history, 'c:bo:1:end'));
      again.turn = 'c:bo:2' as TurnId;
      atEnd(history, again, 'c:bo:2:end');
    },
  ],
  ['a turn with two endings', 'I2', (history) => atEnd(history, at(history, 'c:cy:1:end'), 'again')],
  [
    'a turn with two replies',
    'I2',
    (history) => {
      const reply = at(history, 'c:cy:1:reply');
      const end = at(history, 'c:cy:1:end');
      atEnd(history, reply, 'again');
      atEnd(history, end);
    },
  ],
  ['a reply after the end', 'I2', (history) => atEnd(history, at(history, 'c:cy:1:reply'))],
  [
    'a turn without a start',
    'I2',
    (history) => void ((at(history, 'c:cy:1:started') as { kind: string }).kind = 'membership.changed'),
  ],
  [
    'a call with two results',
    'I2',
    (history) => {
      atEnd(history, at(history, 'c:bo:1:result:0.0'), 'again');
      atEnd(history, at(history, 'c:bo:1:end'));
    },
  ],
  [
    'a call without a result',
    'I2',
    (history) => {
      const result = at(history, 'c:bo:1:result:0.0');
      (result as { kind: string }).kind = 'membership.changed';
    },
  ],
  ['a retry of a turn that is done', 'R1', (history) => retry(history, 'c:cy:1', 'cy')],
  ['a retry of a turn that nobody took', 'R1', (history) => retry(history, 'c:cy:7', 'cy')],
  ['a retry to somebody else', 'R1', (history) => retry(history, 'c:cy:1', 'bo')],
  ['covers that go back', 'I3', (history) => cover(history, 'c:bo:1:end', [1, 1])],
  [
    'a turn that ends before its input',
    'I3',
    (history) => cover(history, 'c:bo:1:end', [at(history, 'c:bo:1:end').seq]),
  ],
  [
    'a reply before its input',
    'I3',
    (history) => {
      const { seq } = at(history, 'c:cy:1:reply');
      cover(history, 'c:cy:1:end', [seq]);
    },
  ],
  [
    'turns out of order',
    'I3',
    (history) => {
      for (const event of history.events) if (event.turn === 'c:cy:1') event.turn = 'c:cy:2' as TurnId;
    },
  ],
  ['covers of what addressed somebody else', 'I4', (history) => cover(history, 'c:cy:1:end', [1])],
  ['covers of what does not exist', 'I4', (history) => cover(history, 'c:cy:1:end', [400])],
  [
    'a snapshot that is gone',
    'I6',
    (history) => {
      const bo = actor(history, 'bo');
      bo.snapshot = null;
    },
  ],
  ['a record with a turn too many', 'I6', (history) => void (actor(history, 'bo').turnNo = 2)],
  [
    'a last turn that never ended',
    'I6',
    (history) => void (actor(history, 'cy').lastTurn = 'c:cy:9' as TurnId),
  ],
  ['an actor that has not processed', 'I7', (history) => void (actor(history, 'bo').processed = 0)],
  [
    'a pinned turn',
    'I7',
    (history) => {
      const bo = actor(history, 'bo');
      bo.turn = {
        id: 'c:bo:2' as TurnId,
        upTo: 1,
        inputs: [1],
        attempt: 1,
        live: {},
        join: 'full',
        baseline: 'b',
        hop: 0,
      };
    },
  ],
  [
    'a turn without an end',
    'I7',
    (history) => {
      history.events = history.events.slice(0, at(history, 'c:cy:1:end').seq - 1);
    },
  ],
  [
    'events of a turn that are not in the log',
    'I7',
    (history) => {
      actor(history, 'cy').unpublished = true;
    },
  ],
  ['a reply after an acknowledged cancel', 'I8', () => undefined, CANCELLED],
  ['a hand-over after an acknowledged cancel', 'I8', () => undefined, { cancelled: ['c:bo:1'] }],
];

test('a sound log has no violation, at rest or at work', () => {
  expect(checkLog(good.events, good.actors)).toEqual([]);
  expect(checkLog(good.events, good.actors, { quiet: false })).toEqual([]);
});

test.each(SPOILT)('%s is found as %s', (_, invariant, spoil, options) => {
  const history = structuredClone(good);
  spoil(history);
  const found = checkLog(history.events, history.actors, options);
  expect(found.map((violation) => violation.invariant)).toContain(invariant);
});

test('work in progress is no violation, and a paused actor need not answer', () => {
  const history = structuredClone(good);
  const handoff = history.events.find(({ kind }) => kind === 'handoff') as Event;
  const events = history.events.slice(0, handoff.seq);
  const actors = [{ ...actor(history, 'cy'), snapshot: null, turnNo: 0, lastTurn: null, processed: 0 }];
  expect(checkLog(events, actors, { quiet: false })).toEqual([]);
  const bo = history.events.slice(0, handoff.seq + 1);
  expect(checkLog(bo, [{ ...(actors[0] as ActorRecord), parked: 'paused' }])).toEqual([]);
  expect(checkLog(bo, actors).map(({ invariant }) => invariant)).toEqual(['I2', 'I7']);
});

test('each conversation is checked by itself', () => {
  const other = structuredClone(good.events).map((event) => ({
    ...event,
    conversation: 'd' as Event['conversation'],
  }));
  expect(checkLog([...good.events, ...other], good.actors)).toEqual([]);
  expect(
    checkLog([...good.events, ...other.slice(1)], good.actors).map(({ conversation }) => conversation),
  ).toContain('default/d');
});
