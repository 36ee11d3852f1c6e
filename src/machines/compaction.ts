import { assign, setup } from 'xstate';
import type { CompactionReason } from '../events/index.ts';

/**
 * Makes an agent's view fit its window, as decisions only: which strategy comes next.
 *
 * Each working state carries one tag, the name of the effect that `src/actors` performs there. The outcome of the effect
 * comes back as an event. A run lives within one step of a turn and is never persisted.
 *  C1  Cheap strategies come first: an existing compaction, tool outputs, a model's summary, a selection, shortening.
 *  C2  A `tidying` run is made although everything fits, so it cannot fail: because the cache is lost anyway, or
 *      because the agent is to begin each turn without old tool outputs.
 *      After an `overflow` pruning is skipped: the counts were wrong, and a prune sized by them would be refused again.
 *      A `join` skips it too: the newcomer wants a summary.
 *  C3  Every run ends after at most `MAX_COMPACTION_EFFECTS` effects, whatever their outcomes. Only waiting for another
 *      agent and shortening again go back, and both count against `MAX_ROUNDS`.
 *  C4  Adopting and pruning call no model: neither can fail, and `tidying` and `sparing` runs cannot be aborted.
 */
export const COMPACTION_EFFECTS = ['adopt', 'prune', 'summarise', 'awaitOther', 'extract', 'trim'] as const;
export type CompactionEffect = (typeof COMPACTION_EFFECTS)[number];

/** Rounds without success before the run gives up. */
export const MAX_ROUNDS = 3;
/** The longest run: adopt and prune, twice summarise, await and adopt, then summarise, extract and trim. */
export const MAX_COMPACTION_EFFECTS = 11;

interface CompactionContext {
  /** Rounds that ended without success. */
  rounds: number;
}

export type CompactionEvent =
  | { type: 'START'; reason: CompactionReason }
  /** The estimate is below the target. */
  | { type: 'FITS' }
  /** Something was gained, but too little. */
  | { type: 'NOT_ENOUGH' }
  /** There was nothing to do. */
  | { type: 'SKIPPED' }
  /** A model failed or its summary was rejected, or the compaction could not be stored. */
  | { type: 'FAILED' }
  /** Another agent holds the conversation's compaction lock. */
  | { type: 'LOCKED' }
  /** The other agent has finished. */
  | { type: 'ADOPTABLE' }
  | { type: 'LOCK_EXPIRED' }
  | { type: 'ABORTED' };

/** The next strategy follows, whether this one gained something or had nothing to do. */
function onward<T extends string>(target: T) {
  return { NOT_ENOUGH: target, SKIPPED: target } as const;
}

export const compaction = setup({
  types: { context: {} as CompactionContext, events: {} as CompactionEvent },
  guards: {
    isColdCache: ({ event }) => event.type === 'START' && event.reason === 'cold_cache',
    isEachTurn: ({ event }) => event.type === 'START' && event.reason === 'each_turn',
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
          { guard: 'isColdCache', target: 'tidying' },
          { guard: 'isEachTurn', target: 'tidying.pruning' },
          { guard: 'skipsPruning', target: 'compacting' },
          { target: 'sparing' },
        ],
      },
    },
    tidying: {
      initial: 'adopting',
      on: { FITS: 'compacted' },
      states: {
        adopting: { tags: 'adopt', on: onward('pruning') },
        pruning: { tags: 'prune', on: onward('#compaction.compacted') },
      },
    },
    sparing: {
      initial: 'adopting',
      on: { FITS: 'compacted' },
      states: {
        adopting: { tags: 'adopt', on: onward('pruning') },
        pruning: { tags: 'prune', on: onward('#compaction.compacting.summarising') },
      },
    },
    compacting: {
      initial: 'adopting',
      on: { FITS: 'compacted', ABORTED: 'aborted' },
      states: {
        adopting: { tags: 'adopt', on: onward('summarising') },
        summarising: {
          tags: 'summarise',
          on: {
            ...onward('extracting'),
            FAILED: 'extracting',
            LOCKED: [
              { guard: 'hasRoundsLeft', target: 'waiting', actions: 'countRound' },
              { target: 'extracting' },
            ],
          },
        },
        waiting: { tags: 'awaitOther', on: { ADOPTABLE: 'adopting', LOCK_EXPIRED: 'summarising' } },
        extracting: { tags: 'extract', on: { ...onward('trimming'), FAILED: 'trimming' } },
        trimming: {
          tags: 'trim',
          on: {
            NOT_ENOUGH: [
              { guard: 'hasRoundsLeft', target: 'extracting', actions: 'countRound' },
              { target: '#compaction.exhausted' },
            ],
            SKIPPED: '#compaction.exhausted',
          },
        },
      },
    },
    compacted: { type: 'final' },
    exhausted: { type: 'final' },
    aborted: { type: 'final' },
  },
});
