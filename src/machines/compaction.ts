import { assign, setup } from 'xstate';
import type { CompactionReason } from '../events/index.ts';

/**
 * How an agent's view is made to fit its window, as decisions only: which rung of the ladder comes next.
 *
 * Each working state carries one tag, the name of the effect that `src/actors` performs there; its outcome comes back as
 * an event. A run lives within one step of a turn and is never persisted.
 *  C1  Cheap before dear: what is there already, then tool outputs, then a model, then a selection, then shortening.
 *  C2  `cold` uses a moment in which the cache is lost anyway: nothing needs to fit, so it cannot fail.
 *      After a refusal of the provider (`overflow`) the counts were wrong, and pruning by them would be refused again;
 *      who joins with a summary wants one.
 *  C3  Every run ends after at most `MAX_RELIEF_EFFECTS` effects, whatever their outcomes: only a wait for another
 *      agent and a further round of shortening go back, and both count against `MAX_ROUNDS`.
 */
export const COMPACTION_EFFECTS = ['adopt', 'prune', 'summarise', 'awaitOther', 'extract', 'trim'] as const;
export type CompactionEffect = (typeof COMPACTION_EFFECTS)[number];

/** Rounds without success, after which the circuit is broken. */
export const MAX_ROUNDS = 3;
/** adopt, prune, then summarise, await, adopt twice, then summarise, extract, trim. */
export const MAX_COMPACTION_EFFECTS = 11;

export interface CompactionContext {
  /** Rounds that ended without success: the effects choose a stricter target with each. */
  rounds: number;
}

export type CompactionEvent =
  | { type: 'START'; reason: CompactionReason }
  /** The estimate is under the target. */
  | { type: 'FITS' }
  /** Something was gained. */
  | { type: 'NOT_ENOUGH' }
  /** There was nothing to do. */
  | { type: 'SKIPPED' }
  /** A model failed, or what it wrote was rejected. */
  | { type: 'FAILED' }
  /** Another agent holds the conversation's compaction lock. */
  | { type: 'LOCKED' }
  /** The other agent has finished. */
  | { type: 'ADOPTABLE' }
  | { type: 'LOCK_EXPIRED' }
  | { type: 'ABORTED' };

/** Where a rung that is done leads, whatever it has brought. */
function onward<T extends string>(target: T) {
  return { NOT_ENOUGH: target, SKIPPED: target, FAILED: target } as const;
}

const ENDS = { FITS: 'compacted', ABORTED: 'aborted' } as const;

export const compaction = setup({
  types: { context: {} as CompactionContext, events: {} as CompactionEvent },
  guards: {
    isColdCache: ({ event }) => event.type === 'START' && event.reason === 'cold_cache',
    skipsPruning: ({ event }) =>
      event.type === 'START' && (event.reason === 'overflow' || event.reason === 'join'),
    hasRoundsLeft: ({ context }) => context.rounds + 1 < MAX_ROUNDS,
  },
  actions: {
    countRound: assign({ rounds: ({ context }) => context.rounds + 1 }),
  },
}).createMachine({
  id: 'compaction',
  context: { rounds: 0 },
  initial: 'idle',
  states: {
    idle: {
      on: {
        START: [
          { guard: 'isColdCache', target: 'cold' },
          { guard: 'skipsPruning', target: 'compacting' },
          { target: 'sparing' },
        ],
      },
    },
    cold: {
      initial: 'adopting',
      on: ENDS,
      states: {
        adopting: { tags: 'adopt', on: onward('pruning') },
        pruning: { tags: 'prune', on: onward('#compaction.compacted') },
      },
    },
    sparing: {
      initial: 'adopting',
      on: ENDS,
      states: {
        adopting: { tags: 'adopt', on: onward('pruning') },
        pruning: { tags: 'prune', on: onward('#compaction.compacting.summarising') },
      },
    },
    compacting: {
      initial: 'adopting',
      on: ENDS,
      states: {
        adopting: { tags: 'adopt', on: onward('summarising') },
        summarising: {
          tags: 'summarise',
          on: {
            ...onward('extracting'),
            LOCKED: [
              { guard: 'hasRoundsLeft', target: 'waiting', actions: 'countRound' },
              { target: 'extracting' },
            ],
          },
        },
        waiting: { tags: 'awaitOther', on: { ADOPTABLE: 'adopting', LOCK_EXPIRED: 'summarising' } },
        extracting: { tags: 'extract', on: onward('trimming') },
        trimming: {
          tags: 'trim',
          on: {
            NOT_ENOUGH: [
              { guard: 'hasRoundsLeft', target: 'extracting', actions: 'countRound' },
              { target: '#compaction.exhausted' },
            ],
            SKIPPED: '#compaction.exhausted',
            FAILED: '#compaction.exhausted',
          },
        },
      },
    },
    compacted: { type: 'final' },
    exhausted: { type: 'final' },
    aborted: { type: 'final' },
  },
});
