import { assign, setup } from 'xstate';

/**
 * The state of one conversation: its mode, whether it is open, and how many delegations are. Decisions only; it is
 * folded from the log's events and never persisted by itself. A mode switch never touches the log.
 */
export interface ConversationContext {
  phase: string | null;
  openDelegations: number;
}

export type ConversationEvent =
  | { type: 'MODE'; mode: 'chat' | 'agent' | 'run' }
  | { type: 'PHASE'; phase: string }
  | { type: 'DELEGATED' }
  | { type: 'DELEGATION_ENDED' }
  | { type: 'ARCHIVE' }
  | { type: 'REOPEN' };

export const conversation = setup({
  types: { context: {} as ConversationContext, events: {} as ConversationEvent },
  guards: {
    toChat: ({ event }) => event.type === 'MODE' && event.mode === 'chat',
    toAgent: ({ event }) => event.type === 'MODE' && event.mode === 'agent',
    hasDelegations: ({ context }) => context.openDelegations > 0,
  },
  actions: {
    setPhase: assign({
      phase: ({ event, context }) => (event.type === 'PHASE' ? event.phase : context.phase),
    }),
    addDelegation: assign({ openDelegations: ({ context }) => context.openDelegations + 1 }),
    dropDelegation: assign({ openDelegations: ({ context }) => Math.max(0, context.openDelegations - 1) }),
  },
}).createMachine({
  id: 'conversation',
  context: { phase: null, openDelegations: 0 },
  initial: 'open',
  states: {
    open: {
      initial: 'agent',
      on: {
        MODE: [
          { guard: 'toChat', target: '.chat' },
          { guard: 'toAgent', target: '.agent' },
          { target: '.run' },
        ],
        PHASE: { actions: 'setPhase' },
        DELEGATED: { actions: 'addDelegation' },
        DELEGATION_ENDED: { guard: 'hasDelegations', actions: 'dropDelegation' },
        ARCHIVE: 'archived',
      },
      states: { chat: {}, agent: {}, run: {} },
    },
    archived: { on: { REOPEN: 'open' } },
  },
});
