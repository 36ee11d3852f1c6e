import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { initialTransition, type SnapshotFrom, transition } from 'xstate';
import { CompactionReason } from '../../src/events/index.ts';
import {
  compaction,
  MAX_COMPACTION_EFFECTS,
  MAX_ROUNDS,
  COMPACTION_EFFECTS,
  type CompactionEvent,
} from '../../src/machines/compaction.ts';
import { describeMachine } from '../../src/machines/describe.ts';
import { explore, pathOf } from '../support/engine-machine.ts';

type Snapshot = SnapshotFrom<typeof compaction>;
const START: CompactionEvent[] = CompactionReason.options.map((reason) => ({ type: 'START', reason }));
const OUTCOMES = [
  { type: 'FITS' },
  { type: 'NOT_ENOUGH' },
  { type: 'SKIPPED' },
  { type: 'FAILED' },
  { type: 'LOCKED' },
  { type: 'ADOPTABLE' },
  { type: 'LOCK_EXPIRED' },
  { type: 'ABORTED' },
] as const satisfies CompactionEvent[];
const ALPHABET: CompactionEvent[] = [...START, ...OUTCOMES];
const ENDS = ['compacted', 'exhausted', 'aborted'];

const initial = initialTransition(compaction)[0];
const next = (snapshot: Snapshot, event: CompactionEvent): Snapshot =>
  transition(compaction, snapshot, event)[0];
const isSame = (a: Snapshot, b: Snapshot) =>
  JSON.stringify([a.value, a.context]) === JSON.stringify([b.value, b.context]);
const effectOf = (snapshot: Snapshot): string | undefined => [...snapshot.tags][0];
const visits = explore({ start: initial, next, alphabet: ALPHABET, within: () => true });

/** The effects until the end, if every one of them comes out as `outcomes` say; SKIPPED where it does not say. */
function effects(reason: CompactionReason, outcomes: Record<string, CompactionEvent['type'][]> = {}) {
  const left = structuredClone(outcomes);
  const performed: string[] = [];
  let at = next(initial, { type: 'START', reason });
  for (let effect = effectOf(at); effect !== undefined; effect = effectOf(at)) {
    performed.push(effect);
    at = next(at, { type: left[effect]?.shift() ?? 'SKIPPED' } as CompactionEvent);
    if (performed.length > 50) expect.fail(`no end: ${performed.join(' ')}`);
  }
  return `${performed.join(' ')} -> ${pathOf(at.value)}`;
}

describe('the compaction of a view', () => {
  test('reaches every state, accepts every event somewhere, and has one effect in every state but at both ends', () => {
    const described = describeMachine(compaction).states;
    expect(new Set(visits.map(({ path }) => path))).toEqual(new Set(described.map(({ path }) => path)));
    const accepted = new Set(described.flatMap(({ events }) => events.map(({ event }) => event)));
    expect(new Set(ALPHABET.map(({ type }) => type as string))).toEqual(accepted);
    const found = new Set<string>();
    for (const { path, snapshot } of visits) {
      expect([path, snapshot.tags.size]).toEqual([path, path === 'idle' || ENDS.includes(path) ? 0 : 1]);
      for (const effect of snapshot.tags) found.add(effect);
    }
    expect([...found].toSorted()).toEqual([...COMPACTION_EFFECTS].toSorted());
  });

  test('tries cheap strategies first, compacts at once after a refusal or for a newcomer, and prunes only if the cache is cold', () => {
    expect(effects('over_budget')).toBe('adopt prune summarise extract trim -> exhausted');
    for (const reason of ['overflow', 'join'] as const) {
      expect(effects(reason)).toBe('adopt summarise extract trim -> exhausted');
    }
    expect(effects('cold_cache')).toBe('adopt prune -> compacted');
    expect(effects('each_turn')).toBe('prune -> compacted');
    for (const visit of visits.filter(({ path }) => path.startsWith('tidying.'))) {
      for (const step of visit.steps) expect(pathOf(step.next.value)).not.toBe('exhausted');
    }
  });

  test('continues after a failed model, and waits for another agent that is compacting', () => {
    expect(effects('over_budget', { summarise: ['FAILED'], extract: ['FITS'] })).toBe(
      'adopt prune summarise extract -> compacted',
    );
    const locked = { summarise: ['LOCKED'] } as const;
    expect(
      effects('over_budget', {
        adopt: ['SKIPPED', 'FITS'],
        summarise: [...locked.summarise],
        awaitOther: ['ADOPTABLE'],
      }),
    ).toBe('adopt prune summarise awaitOther adopt -> compacted');
    expect(effects('overflow', { summarise: ['LOCKED', 'FITS'], awaitOther: ['LOCK_EXPIRED'] })).toBe(
      'adopt summarise awaitOther summarise -> compacted',
    );
  });

  test(`breaks the circuit after ${MAX_ROUNDS} rounds without success`, () => {
    const trim = Array.from({ length: 9 }, () => 'NOT_ENOUGH' as const);
    expect(effects('overflow', { trim: [...trim] })).toBe(
      `adopt summarise${' extract trim'.repeat(MAX_ROUNDS)} -> exhausted`,
    );
    const summarise = Array.from({ length: 9 }, () => 'LOCKED' as const);
    const awaitOther = Array.from({ length: 9 }, () => 'LOCK_EXPIRED' as const);
    expect(effects('overflow', { summarise, awaitOther, trim: [...trim] })).toBe(
      'adopt summarise awaitOther summarise awaitOther summarise extract trim -> exhausted',
    );
  });

  test('ends as soon as it fits, from every state with an effect, and is aborted from those that may wait for a model', () => {
    for (const { path, steps } of visits.filter((visit) => visit.snapshot.tags.size > 0)) {
      const to = (type: string) =>
        steps.filter(({ event }) => event.type === type).map((s) => pathOf(s.next.value));
      const aborted = path.startsWith('compacting.') ? 'aborted' : path;
      expect([path, to('FITS'), to('ABORTED')]).toEqual([path, ['compacted'], [aborted]]);
    }
  });

  test(`ends on every path, after at most ${MAX_COMPACTION_EFFECTS} effects`, () => {
    const longest = new Map<string, number>();
    const walk = (at: Snapshot, trail: readonly string[]): number => {
      const key = JSON.stringify([at.value, at.context]);
      expect(trail).not.toContain(key);
      const known = longest.get(key);
      if (known !== undefined) return known;
      const moved = ALPHABET.map((event) => next(at, event)).filter((to) => !isSame(to, at));
      if (moved.length === 0) expect([key, at.status]).toEqual([key, 'done']);
      const rest = moved.map((to) => walk(to, [...trail, key]));
      const effects_ = at.tags.size + Math.max(0, ...rest);
      longest.set(key, effects_);
      return effects_;
    };
    expect(walk(initial, [])).toBe(MAX_COMPACTION_EFFECTS);
  });

  test('no sequence of outcomes makes it loop', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...START),
        fc.infiniteStream(
          fc.constantFrom(...OUTCOMES.filter(({ type }) => type !== 'FITS' && type !== 'ABORTED')),
        ),
        (start, outcomes) => {
          let at = next(initial, start);
          let performed = 1;
          while (at.status === 'active') {
            const accepted = outcomes.next().value as CompactionEvent;
            const to = next(at, accepted);
            if (isSame(to, at)) continue;
            at = to;
            performed += at.tags.size;
            expect(at.context.rounds).toBeLessThan(MAX_ROUNDS);
          }
          expect(performed).toBeLessThanOrEqual(MAX_COMPACTION_EFFECTS);
          expect(ENDS).toContain(pathOf(at.value));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('an event that a state does not accept changes nothing', () => {
    const described = new Map(describeMachine(compaction).states.map((state) => [state.path, state.events]));
    for (const { path, snapshot, steps } of visits) {
      const accepted = new Set(described.get(path)?.map(({ event }) => event));
      for (const step of steps) {
        if (!accepted.has(step.event.type)) expect(isSame(step.next, snapshot)).toBe(true);
      }
    }
  });
});
