import {
  type Event,
  type EventDraft,
  type EventKind,
  type EventOf,
  isTaskEnd,
  type TurnDoneBody,
} from '../events/index.ts';
import { asksToCompact } from '../machines/compaction-fold.ts';
import { foldDirections, foldDirective } from '../machines/directions.ts';
import { beginTurnSteps, steerTurn } from './render/begin-turn.ts';
import { isPlausible, NO_TOKENS, type UsageAnchor } from './budget/tokens.ts';
import { closeGroup, foldOwn, isNote, isSpoken } from './render/messages.ts';
import { eventText, isShownTo, visibleText } from './text/event-text.ts';
import { addPerson } from './text/people.ts';
import { applyCompactionEvent, passCompactionEvent } from './compaction/apply.ts';
import { atOnce, type Steps } from './text/steps.ts';
import { isOwn, type View } from './view/view.ts';

/** Kinds that change how agents work, or which past events they may see. */
const DIRECTING: ReadonlySet<EventKind> = new Set<EventKind>([
  'mode.changed',
  'phase.changed',
  'command',
  'run.directive',
  'compaction',
]);

/**
 * Folds one event of the log into the view. Skips events up to `view.upTo`, so reading them again is harmless.
 * Only events of the running turn are rendered immediately (V3).
 */
export function foldEvent(view: View, event: Event): void {
  const steps = foldOrBegin(view, event);
  if (steps) atOnce(steps);
}

/**
 * Like `foldEvent`, but returns work that may take long as steps for the caller: the start of a turn renders all pending
 * events. The view is inconsistent until the last step is done.
 */
export function foldOrBegin(view: View, event: Event): Steps<void> | undefined {
  if (event.seq <= view.upTo) return undefined;
  view.upTo = event.seq;
  if (event.kind === 'notice') return undefined;
  if (event.author.kind === 'user') addPerson(view.people, event.author, event.seq);
  if (DIRECTING.has(event.kind)) direct(view, event);
  if (!isOwn(view, event)) {
    const isForAll = event.kind === 'message';
    if (visibleText(event) !== null && (isForAll || isShownTo(view.agent, event))) view.pending.push(event);
    return undefined;
  }
  if (event.kind === 'turn.started') return startTurn(view, event);
  if (view.turn && event.turn === view.turn.id) return foldOfTurn(view, event);
  if (event.kind === 'baseline' || event.kind === 'prune') applyCompactionEvent(view, event);
  else if (isSpoken(event)) view.pending.push(event);
  return undefined;
}

/**
 * Like `foldOrBegin`, for an event that a later summary covers and that only ended turns have shown. What these turns rendered
 * is dropped, so words of others are left out and superseded compactions are not applied. All else that later messages depend
 * on is folded: names, call ids, directions, what was stated, results that are held back.
 */
export function foldCovered(view: View, event: Event): Steps<void> | undefined {
  if (!isOwn(view, event)) {
    const steps = foldOrBegin(view, event);
    const isHeld = isTaskEnd(event) || 'told' in event.body;
    if (!isHeld && view.pending.at(-1) === event) view.pending.pop();
    return steps;
  }
  if (event.kind !== 'baseline' && event.kind !== 'prune') return foldOrBegin(view, event);
  if (event.seq <= view.upTo) return undefined;
  view.upTo = event.seq;
  passCompactionEvent(view, event);
  return undefined;
}

function direct(view: View, event: Event): void {
  view.directions = foldDirections(view.directions, event);
  foldDirective(view.directives, event);
  if (event.kind === 'command') noteRequest(view, event);
  if (event.kind === 'compaction') view.compactions.set(event.id, event.body);
}

/** Records a request to compact, for the next turn. Ignores requests from before a fork, which belong to the original. */
function noteRequest(view: View, event: EventOf<'command'>): void {
  if (event.body.from) view.compactAsked = null;
  else if (event.body.agent === view.agent && asksToCompact(event)) view.compactAsked = event.seq;
}

/** Folds a draft of the running turn before it is in the log. Its seq is filled in when the event arrives. */
export function foldAhead(view: View, draft: EventDraft, count: (text: string) => number): void {
  if (!view.turn || view.turn.id !== draft.turn || view.turn.ahead.has(draft.id)) return;
  if (draft.kind === 'baseline' || draft.kind === 'prune') {
    applyCompactionEvent(view, draft);
    view.turn.ahead.set(draft.id, { seqs: [] });
    return;
  }
  if (draft.kind === 'turn.steered') {
    atOnce(steerTurn(view, draft.body));
    view.turn.ahead.set(draft.id, { seqs: [] });
    return;
  }
  if (!isSpoken(draft) && !isNote(draft)) return;
  const placed = { id: draft.id, seqs: [], tokens: count(eventText(draft)), turn: draft.turn };
  const message = foldOwn(view, draft, placed);
  if (message && message !== 'late') view.turn.ahead.set(draft.id, message);
}

function startTurn(view: View, event: EventOf<'turn.started'>): Steps<void> | undefined {
  if (!event.turn || view.turn?.id === event.turn) return undefined;
  return beginTurnSteps(view, { id: event.turn, ...event.body });
}

function foldOfTurn(view: View, event: Event): Steps<void> | undefined {
  const { id, seq, tokens, turn } = event;
  const ahead = view.turn?.ahead.get(id);
  if (ahead) ahead.seqs.push(seq);
  else if (event.kind === 'baseline' || event.kind === 'prune') applyCompactionEvent(view, event);
  else if (event.kind === 'turn.steered') return steerTurn(view, event.body);
  else if (foldOwn(view, event, { id, seqs: [seq], tokens, turn }) === 'late') view.pending.push(event);
  if (event.kind === 'turn.done' || event.kind === 'turn.failed' || event.kind === 'turn.aborted') {
    if (view.group) closeGroup(view);
    if (event.kind === 'turn.done') view.anchor = anchorOf(event.body);
    view.spokeAt = event.at;
    view.lastTurn = event.turn ?? null;
    view.turn = null;
    view.note = null;
  }
  return undefined;
}

/**
 * The usage that the provider reported for the last call of the turn. Null if there is none or it is implausible.
 */
function anchorOf({ last }: TurnDoneBody): UsageAnchor | null {
  if (!last) return null;
  const anchor = { reported: last.reported, kinds: { ...NO_TOKENS, ...last.kinds } };
  return isPlausible(anchor) ? anchor : null;
}
