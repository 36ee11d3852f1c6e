import { assign, setup } from 'xstate';
import { ACTOR_VERSION } from '../events/index.ts';

/**
 * The life of one agent in one conversation, as decisions only.
 *
 * Owns which effect comes next. Does not own the effects: each working state carries one tag, the name of the effect
 * that `src/actors` performs there, and the effect's outcome comes back as an event. No invokes and no `after`: XState
 * would run the former again on restore and lose the latter. Snapshots are taken at rest and hold numbers only.
 *  M1  A state has at most one effect tag, and every effect state accepts ABORTED or is `committing`.
 *  M2  From every working state `committing` is reachable; from `committing` only `idle` and `waiting`.
 *  M3  At rest (`idle`, `waiting`, `paused`, `failed`, `retired`) the context depends on the number of settled turns alone.
 */
export const AGENT_MACHINE_VERSION = ACTOR_VERSION;

export const EFFECTS = [
  'assemble',
  'compact',
  'callModel',
  'runCalls',
  'supervise',
  'commit',
  'backOff',
] as const;
export type EffectName = (typeof EFFECTS)[number];

export interface AgentContext {
  /** Settled turns. */
  turns: number;
  /** Model calls answered in this turn. */
  steps: number;
  /** Failed tries of the present step. */
  tries: number;
}

/** What an agent at rest waits for. It takes other turns meanwhile: waiting is a fact of the log, not of the turn. */
export type WaitsFor = 'delegation' | 'approval' | 'answer';

export type AgentEvent =
  | { type: 'PINNED' }
  | { type: 'PROMPT_READY' }
  | { type: 'OVER_BUDGET' }
  | { type: 'COMPACTED' }
  | { type: 'OVERFLOWED' }
  | { type: 'MODEL_REPLIED' }
  | { type: 'MODEL_CALLED' }
  | { type: 'MODEL_FAILED'; retryable: boolean }
  | { type: 'RETRY_DUE' }
  | { type: 'CALLS_DONE' }
  | { type: 'CALLS_ENDED_TURN' }
  | { type: 'ACCEPTED' }
  | { type: 'CORRECTED' }
  | { type: 'REFUSED' }
  | { type: 'ABORTED' }
  | { type: 'COMMITTED'; waits: WaitsFor | null }
  | { type: 'PAUSE' }
  | { type: 'RESUME' }
  | { type: 'BREAK' }
  | { type: 'RETRY' }
  | { type: 'RETIRE' }
  | { type: 'RECALL' };

/** Tries of one model call, the first included. */
export const MAX_TRIES = 4;

export const agentLifecycle = setup({
  types: { context: {} as AgentContext, events: {} as AgentEvent },
  guards: {
    mayRetry: ({ context, event }) =>
      event.type === 'MODEL_FAILED' && event.retryable && context.tries + 1 < MAX_TRIES,
    waitsForDelegation: ({ event }) => event.type === 'COMMITTED' && event.waits === 'delegation',
    waitsForApproval: ({ event }) => event.type === 'COMMITTED' && event.waits === 'approval',
    waitsForAnswer: ({ event }) => event.type === 'COMMITTED' && event.waits === 'answer',
  },
  actions: {
    countStep: assign({ steps: ({ context }) => context.steps + 1, tries: 0 }),
    countTry: assign({ tries: ({ context }) => context.tries + 1 }),
    startTurn: assign({ steps: 0, tries: 0 }),
    settleTurn: assign({ turns: ({ context }) => context.turns + 1, steps: 0, tries: 0 }),
  },
}).createMachine({
  id: 'agent',
  context: { turns: 0, steps: 0, tries: 0 },
  initial: 'idle',
  states: {
    idle: {
      on: {
        PINNED: { target: 'working', actions: 'startTurn' },
        PAUSE: 'paused',
        BREAK: 'failed',
        RETIRE: 'retired',
      },
    },
    working: {
      initial: 'assembling',
      on: { ABORTED: '.committing', REFUSED: '.committing' },
      states: {
        assembling: {
          tags: 'assemble',
          on: { PROMPT_READY: 'streaming', OVER_BUDGET: 'compacting' },
        },
        compacting: { tags: 'compact', on: { COMPACTED: 'assembling' } },
        streaming: {
          tags: 'callModel',
          on: {
            MODEL_REPLIED: { target: 'supervising', actions: 'countStep' },
            MODEL_CALLED: { target: 'acting', actions: 'countStep' },
            OVERFLOWED: 'compacting',
            MODEL_FAILED: [
              { guard: 'mayRetry', target: '#agent.backoff', actions: 'countTry' },
              { target: 'committing' },
            ],
          },
        },
        acting: {
          tags: 'runCalls',
          on: {
            CALLS_DONE: 'assembling',
            CALLS_ENDED_TURN: 'committing',
          },
        },
        supervising: { tags: 'supervise', on: { ACCEPTED: 'committing', CORRECTED: 'assembling' } },
        committing: {
          tags: 'commit',
          on: {
            COMMITTED: [
              { guard: 'waitsForApproval', target: '#agent.waiting.approval', actions: 'settleTurn' },
              { guard: 'waitsForAnswer', target: '#agent.waiting.answer', actions: 'settleTurn' },
              { guard: 'waitsForDelegation', target: '#agent.waiting.delegation', actions: 'settleTurn' },
              { target: '#agent.idle', actions: 'settleTurn' },
            ],
          },
        },
      },
    },
    backoff: {
      tags: 'backOff',
      on: { RETRY_DUE: 'working.streaming', ABORTED: 'working.committing', REFUSED: 'working.committing' },
    },
    waiting: {
      initial: 'answer',
      on: {
        PINNED: { target: 'working', actions: 'startTurn' },
        PAUSE: 'paused',
        BREAK: 'failed',
        RETIRE: 'retired',
      },
      states: { delegation: {}, approval: {}, answer: {} },
    },
    paused: { on: { RESUME: 'idle', RETIRE: 'retired' } },
    failed: { on: { RETRY: 'idle', RETIRE: 'retired' } },
    retired: { on: { RECALL: 'idle' } },
  },
});
