import { initialTransition, transition } from 'xstate';
import { type Directive, directiveOf, foldRun, newRunState, type RunState } from '../../context/index.ts';
import { type Event, type EventId, type Mode, hasAuthority } from '../../events/index.ts';
import { conversation, type ConversationEvent } from '../../machines/conversation.ts';
import type { Log } from '../../store/store.ts';
import type { PageSource } from '../read-pages.ts';

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

export interface ConversationStates {
  of(log: Log): Promise<ConversationState>;
}

/** How far a log is folded. */
interface Fold {
  snapshot: ReturnType<typeof transition<typeof conversation>>[0];
  runs: RunState;
  mode: Mode | null;
  seq: number;
  /** Of the event with that seq. */
  id: EventId | null;
}

/** Conversations at most; the least recently looked at is forgotten first. */
const KEPT = 256;

/**
 * Owns folds of the logs that are looked at; they can be lost at any moment.
 *  1. Who looks again reads what is new, and the last event that was folded: where another stands there, the conversation
 *     was deleted and begun anew, and is folded from its beginning.
 *  2. Two who look at once have one fold each: whoever is done last is remembered.
 */
export function createConversationStates(store: PageSource): ConversationStates {
  const known = new Map<string, Fold>();

  async function catchUp(log: Log, start: Fold): Promise<Fold> {
    let fold = start;
    for (let isFirst = true; ; isFirst = false) {
      const after = isFirst ? Math.max(0, fold.seq - 1) : fold.seq;
      const { events, isLast } = await store.readPage(log, { after });
      if (isFirst && fold.seq > 0 && events[0]?.id !== fold.id) return catchUp(log, newFold());
      for (const event of events) if (event.seq > fold.seq) fold = foldEvent(fold, event);
      if (isLast) return fold;
    }
  }

  return {
    async of(log) {
      const key = `${log.tenant}/${log.conversation}`;
      const fold = await catchUp(log, known.get(key) ?? newFold());
      known.delete(key);
      known.set(key, fold);
      if (known.size > KEPT) known.delete(known.keys().next().value ?? key);
      return stateOf(fold);
    },
  };
}

function newFold(): Fold {
  const [snapshot] = initialTransition(conversation);
  return { snapshot, runs: newRunState(), mode: null, seq: 0, id: null };
}

function foldEvent(before: Fold, event: Event): Fold {
  const fold = { ...before, seq: event.seq, id: event.id };
  if (!hasAuthority(event)) return fold;
  if (event.kind === 'mode.changed' || event.kind === 'run.directive') {
    fold.runs = { ...fold.runs, directives: new Map(fold.runs.directives) };
    foldRun(fold.runs, event);
  }
  const told = machineEvent(event);
  if (told) [fold.snapshot] = transition(conversation, fold.snapshot, told);
  if (event.kind === 'mode.changed') fold.mode = event.body.mode;
  // It goes on in the mode in which it was archived.
  if (event.kind === 'reopened' && fold.mode)
    [fold.snapshot] = transition(conversation, fold.snapshot, { type: 'MODE', mode: fold.mode });
  return fold;
}

function stateOf({ snapshot, runs, mode }: Fold): ConversationState {
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
