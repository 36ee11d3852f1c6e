import { initialTransition, transition } from 'xstate';
import { type Directive, directiveOf, foldRun, newRunState } from '../context/index.ts';
import type { Event, Mode } from '../events/index.ts';
import { conversation, type ConversationEvent } from '../machines/conversation.ts';
import type { Log, Store } from '../store/store.ts';

/** What a conversation has come to: the conversation machine folded over its log. */
export interface ConversationState {
  /** State path of the machine, as `open.agent`. */
  state: string;
  /** Also while it is archived: what it goes on in. */
  mode: Mode;
  phase: string | null;
  openDelegations: number;
  /** What holds in run mode, with the step that it is at; absent in other modes and where no directive was given. */
  run?: Omit<Directive, 'steps'>;
}

const PAGE = 2_000;

export async function conversationState(store: Store, log: Log): Promise<ConversationState> {
  let [snapshot] = initialTransition(conversation);
  const runs = newRunState();
  let mode: Mode | null = null;
  for (let after = 0; ;) {
    const events = await store.read(log, { after, limit: PAGE });
    for (const event of events) {
      foldRun(runs, event);
      const told = machineEvent(event);
      if (told) [snapshot] = transition(conversation, snapshot, told);
      if (event.kind === 'mode.changed') mode = event.body.mode;
      // It goes on in the mode in which it was archived.
      if (event.kind === 'reopened' && mode)
        [snapshot] = transition(conversation, snapshot, { type: 'MODE', mode });
    }
    after = events.at(-1)?.seq ?? after;
    if (events.length < PAGE) break;
  }
  const { value, context } = snapshot;
  const state = typeof value === 'string' ? value : Object.entries(value).flat().join('.');
  const run = snapshot.matches({ open: 'run' }) ? directiveOf(runs) : null;
  return { state, mode: mode ?? 'agent', ...context, ...(run && { run: withoutSteps(run) }) };
}

/** All that it will come to is in the log, once. */
function withoutSteps({ steps: _steps, ...directive }: Directive): Omit<Directive, 'steps'> {
  return directive;
}

/** Most events are talk and change nothing here. */
function machineEvent(event: Event): ConversationEvent | null {
  switch (event.kind) {
    case 'mode.changed':
      return { type: 'MODE', mode: event.body.mode };
    case 'phase.changed':
      return { type: 'PHASE', phase: event.body.phase };
    case 'delegation.opened':
      return { type: 'DELEGATED' };
    case 'delegation.completed':
    case 'delegation.aborted':
      return { type: 'DELEGATION_ENDED' };
    case 'archived':
      return { type: 'ARCHIVE' };
    case 'reopened':
      return { type: 'REOPEN' };
    default:
      return null;
  }
}
