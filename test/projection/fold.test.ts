import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EVENT_KINDS, type Event } from '../../src/events/index.ts';
import type { Projection } from '../../src/library/projection/model.ts';
import { foldEvent, foldEvents, newProjection } from '../../src/library/projection/projection.ts';
import { rowOf } from '../../src/library/projection/row.ts';
import { matchesRow } from '../../src/library/projection/match-event.ts';
import { addTerms, findWords, wordQuery } from '../../src/library/projection/search-words.ts';
import { logged } from '../support/log-player.ts';
import { moves, RandomRun } from '../support/random-run.ts';
import { folded } from './logs.ts';

/** Deeply frozen, so that a change of shared data throws. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(frozen);
  }
  return value;
}

const json = fc.jsonValue({ maxDepth: 3 });
const ids = fc.constantFrom('ada', 'bob', 'constructor', '__proto__', 'not an id', '');
const someSeqs = fc.array(fc.nat(30), { maxLength: 4 });
const turns = fc.constantFrom('c:ada:1', 'c:ada:2', 'c:bob:1', 'nonsense');

/** Events of known and unknown kinds, with bodies that may fit or not. */
const illegal = fc.record({
  id: fc.constantFrom('e', 'failed:ada:3', 'failed::', 'joined:bob'),
  kind: fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...EVENT_KINDS) }, fc.string()),
  author: fc.record({ kind: fc.constantFrom('user', 'agent', 'system'), id: ids, name: fc.string() }),
  to: fc.array(ids, { maxLength: 3 }),
  turn: fc.option(turns, { nil: undefined }),
  body: fc.oneof(
    json,
    fc.record(
      {
        agent: ids,
        covers: someSeqs,
        inputs: someSeqs,
        upTo: fc.nat(30),
        content: fc.string(),
        usage: fc.record({ input: fc.nat(), output: fc.nat(), cacheRead: fc.nat(), cacheWrite: fc.nat() }),
        tokens: fc.record({ before: fc.nat(), after: fc.option(fc.nat()) }),
        command: fc.constantFrom('pause', 'resume', 'retire', 'recall', 'reinstate', 'retry', 'fork'),
        delegation: ids,
        question: ids,
        request: ids,
        calls: fc.array(fc.record({ id: ids, name: ids, args: fc.string() }), { maxLength: 3 }),
        call: ids,
        outcome: fc.string(),
        text: fc.string(),
        args: fc.string(),
        tool: fc.string(),
        task: fc.string(),
        turn: turns,
        code: fc.string(),
        message: fc.string(),
        steps: fc.nat(),
        partial: fc.string(),
      },
      { requiredKeys: [] },
    ),
  ),
});

function numbered(drafts: readonly unknown[]): Event[] {
  return drafts.map((draft, index) => ({
    ...(draft as Event),
    conversation: 'c' as Event['conversation'],
    seq: index + 1,
    at: 1_000 + index,
  }));
}

/** Cuts a list at the given places. */
function pagesOf<T>(list: readonly T[], cuts: readonly number[]): T[][] {
  const places = [0, ...cuts.map((cut) => cut % (list.length + 1)).toSorted((a, b) => a - b), list.length];
  return places.slice(1).map((end, index) => list.slice(places[index], end));
}

function checkFold(log: readonly Event[], cuts: readonly number[]): void {
  const all = folded(log);
  let one = frozen(newProjection('c'));
  for (const event of log) one = frozen(foldEvent(one, event));
  expect(one).toEqual(all);
  let paged = frozen(newProjection('c'));
  for (const page of pagesOf(log, cuts)) paged = frozen(foldEvents(paged, page));
  expect(paged).toEqual(all);
  // Events already folded change nothing.
  expect(foldEvents(all, log)).toBe(all);
  expect(all.totals.events).toBe(log.length);
  expect(all.totals.running).toBe(Object.values(all.agents).filter(({ turn }) => turn !== null).length);
}

describe('folding', () => {
  test('gives the same result event by event and in any pages', () => {
    fc.assert(
      fc.property(moves, fc.array(fc.nat(), { maxLength: 4 }), (all, cuts) => {
        const { log } = new RandomRun().play(all).player;
        checkFold(log, cuts);
        // A projection is plain JSON that another process can continue.
        const half = JSON.parse(JSON.stringify(folded(log.slice(0, log.length >> 1)))) as Projection;
        expect(foldEvents(half, log)).toEqual(folded(log));
      }),
      { numRuns: 150 },
    );
  });

  test('gives the same result for illegal events and never throws', () => {
    fc.assert(
      fc.property(
        fc.array(illegal, { maxLength: 40 }),
        fc.array(fc.nat(), { maxLength: 4 }),
        (drafts, cuts) => checkFold(numbered(drafts), cuts),
      ),
      { numRuns: 300 },
    );
  });

  test('never throws for any JSON, and ignores what is no event', () => {
    fc.assert(
      fc.property(json, (value) => {
        const before = folded([]);
        const after = foldEvent(before, value as unknown as Event);
        if (typeof (value as { seq?: unknown } | null)?.seq !== 'number') expect(after).toBe(before);
        const row = rowOf((value ?? {}) as unknown as Event);
        expect(row.summary.length).toBeLessThanOrEqual(200);
        matchesRow(row, (value ?? {}) as unknown as Event, { query: 'x', turn: 't', agents: ['a'] });
        findWords((value ?? {}) as unknown as Event, wordQuery('x'));
        addTerms((value ?? {}) as unknown as Event, new Set());
      }),
      { numRuns: 500 },
    );
  });

  test.each(['vote.cast', 'constructor', 'toString'])(
    'counts an event of the unknown kind %s, which becomes a raw row',
    (kind) => {
      const event = {
        ...logged(
          {
            id: 'e',
            author: { kind: 'user', id: 'u', name: 'Uma' },
            to: [],
            kind: 'message',
            body: { content: '' },
          } as never,
          1,
        ),
        kind,
        body: { for: 'tea' },
      } as unknown as Event;
      const after = folded([event]);
      expect(after).toMatchObject({ seq: 1, totals: { events: 1 } });
      expect(rowOf(event)).toMatchObject({
        kind,
        level: 'work',
        author: 'Uma',
        summary: `${kind} {"for":"tea"}`,
      });
    },
  );

  test('keeps the parts that an event does not affect as the same objects', () => {
    fc.assert(
      fc.property(moves, (all) => {
        const log = new RandomRun().play(all).player.log;
        let before = newProjection('c');
        for (const event of log) {
          const after = foldEvent(before, event);
          const about = new Set<string>([event.author.id, ...event.to]);
          for (const [id, view] of Object.entries(before.agents)) {
            if (!about.has(id)) expect(after.agents[id]).toBe(view);
          }
          for (const turn of before.turns) {
            if (event.turn !== turn.id && !about.has(turn.agent)) expect(after.turns).toContain(turn);
          }
          if (event.to.length === 0) expect(after.arrows).toBe(before.arrows);
          if (event.kind !== 'message' && event.kind !== 'handoff') expect(after.talk).toBe(before.talk);
          expect(after.tasks).toBe(before.tasks);
          before = after;
        }
      }),
      { numRuns: 60 },
    );
  });
});
