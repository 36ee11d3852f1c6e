import type { Event, EventDraft, PromptMessage } from '../events/index.ts';
import { displayName } from './attribution.ts';
import { beginTurn, showPending } from './begin-turn.ts';
import { addResult, closeGroup, openGroup, type Placed } from './call-group.ts';
import { eventText, visibleText } from './event-text.ts';
import { isOwn, pushMessage, type View } from './view.ts';

const FRAME_TOKENS = 4;

/** Folds one event of the log into the view. Events at or before `view.upTo` are skipped, so a re-read does no harm. */
export function foldEvent(view: View, event: Event): void {
  if (event.seq <= view.upTo) return;
  view.upTo = event.seq;
  if (event.author.kind === 'user') view.people.add(displayName(event.author));
  if (event.kind === 'mode.changed') view.mode = event.body.mode;
  if (!isOwn(view, event)) return foldOther(view, event);
  if (event.kind === 'baseline') view.baseline = { id: event.id, body: event.body };
  if (event.kind === 'turn.started') return foldOwnTurn(view, event);
  const ahead = view.turn?.id === event.turn ? view.turn?.ahead.get(event.id) : undefined;
  if (ahead) ahead.seqs.push(event.seq);
  else foldOwn(view, event, { id: event.id, seqs: [event.seq], tokens: event.tokens });
  if (isEnding(event) && view.turn && view.turn.id === event.turn) {
    closeGroup(view);
    view.turn = null;
  }
}

/** Folds what the agent's running turn has produced and the log does not have yet; its seq is filled in when it comes. */
export function foldAhead(view: View, draft: EventDraft, tokens: number): void {
  if (!view.turn || view.turn.id !== draft.turn || view.turn.ahead.has(draft.id)) return;
  const message = foldOwn(view, draft, { id: draft.id, seqs: [], tokens });
  if (message) view.turn.ahead.set(draft.id, message);
}

function foldOther(view: View, event: Event): void {
  if (visibleText(event) !== null) view.pending.push(event);
}

function foldOwnTurn(view: View, event: Extract<Event, { kind: 'turn.started' }>): void {
  if (!event.turn || view.turn?.id === event.turn) return;
  beginTurn(view, { id: event.turn, ...event.body });
}

function foldOwn(view: View, event: EventDraft | Event, at: Placed): PromptMessage | null {
  switch (event.kind) {
    case 'step':
      speak(view, event);
      return openGroup(view, event.body, at);
    case 'tool.result':
      return foldResult(view, event, at);
    case 'message':
      if (event.body.content.trim() === '') return null;
      speak(view, event);
      return pushOwnText(view, event.body.content, at);
    case 'handoff':
      // Made with a tool, the call already says it.
      if (event.turn !== undefined) return null;
      speak(view, event);
      return pushOwnText(view, `[handed over to @${event.to.join(', @')}]\n${eventText(event)}`, at);
    case 'turn.failed':
      return foldFailure(view, event, event.body.partial, `[this turn failed: ${event.body.code}]`, at);
    case 'turn.aborted':
      return foldFailure(view, event, event.body.partial, '[interrupted]', at);
    default:
      return null;
  }
}

/** Before own words outside a turn, everything pending is history; inside a turn, what came later stays pending. */
function speak(view: View, event: EventDraft | Event): void {
  closeGroup(view);
  const inTurn = view.turn !== null && view.turn.id === event.turn;
  if (!inTurn) showPending(view);
  view.present = true;
}

function pushOwnText(view: View, text: string, at: Placed): PromptMessage {
  const message: PromptMessage = { role: 'assistant', content: text.toWellFormed(), seqs: at.seqs };
  pushMessage(view, message, at.tokens + FRAME_TOKENS);
  return message;
}

/** A failed turn is shown once, at its place: what was said, and one line, so that "continue" has its anchor. */
function foldFailure(
  view: View,
  event: EventDraft | Event,
  partial: string,
  line: string,
  at: Placed,
): PromptMessage {
  speak(view, event);
  return pushOwnText(view, partial === '' ? line : `${partial}\n${line}`, at);
}

/** A result for a call already answered synthetically is news: it waits with the others' words, and edits nothing. */
function foldResult(
  view: View,
  event: Extract<EventDraft | Event, { kind: 'tool.result' }>,
  at: Placed,
): PromptMessage | null {
  const placed = addResult(view, event.body, at);
  if (placed !== 'late') return placed;
  if ('seq' in event) view.pending.push(event);
  return null;
}

function isEnding(event: Event): boolean {
  return event.kind === 'turn.done' || event.kind === 'turn.failed' || event.kind === 'turn.aborted';
}
