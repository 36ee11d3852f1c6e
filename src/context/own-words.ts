import { type Event, type EventDraft, type PromptMessage, isAbout } from '../events/index.ts';
import { addResult, closeGroup, openGroup, type Placed } from './call-group.ts';
import { estimateFraming, estimateTokens, FRAME_TOKENS } from './estimate-tokens.ts';
import { eventText } from './event-text.ts';
import { escapeMarks, fence } from './fence.ts';
import { fenceKey } from './hash.ts';
import { messageText } from './message-text.ts';
import { pushSlot, type View } from './view.ts';

/** Whether an own event has anything to render; the rest is bookkeeping. */
export function isSpoken(event: EventDraft | Event): boolean {
  if (!isAbout(event, 'own')) return false;
  switch (event.kind) {
    case 'message':
      return messageText(event.body).trim() !== '';
    case 'handoff':
      // Made with a tool, the call already says it.
      return event.turn === undefined;
    case 'step':
      return event.body.calls.length > 0 || event.body.content.trim() !== '';
    case 'tool.result':
    case 'turn.failed':
    case 'turn.aborted':
      return true;
  }
}

/** What one step of the running turn is told, and nobody else. */
export function isNote(event: EventDraft | Event): boolean {
  return event.kind === 'injection' && event.body.oneStep;
}

/**
 * Renders an own event: the agent's words as its own, never prefixed. Null where nothing is rendered; `late` for the
 * result of a call that was already answered synthetically: that is news and edits nothing.
 */
export function foldOwn(view: View, event: EventDraft | Event, at: Placed): PromptMessage | 'late' | null {
  if (isNote(event)) return takeNote(view, eventText(event), at);
  if (!isAbout(event, 'own') || !isSpoken(event)) return null;
  if (event.kind === 'tool.result') return addResult(view, event.body, at);
  closeGroup(view);
  view.note = null;
  switch (event.kind) {
    case 'step':
      return openGroup(view, event.body, at);
    case 'message':
      return pushOwn(view, messageText(event.body), at);
    case 'handoff':
      return pushOwn(view, `[handed over to @${event.to.join(', @')}]\n${eventText(event)}`, at);
    case 'turn.failed':
      return pushFailure(view, event.body.partial, `[this turn failed: ${event.body.code}]`, at);
    case 'turn.aborted':
      return pushFailure(view, event.body.partial, '[interrupted]', at);
  }
}

/** Marked as the reminders of the runtime are. */
function takeNote(view: View, text: string, { id, seqs, tokens }: Placed): PromptMessage {
  const content = fence('reminder', fenceKey(view.secret, `note ${id}`), escapeMarks(text));
  const message: PromptMessage = { role: 'user', content, seqs };
  view.note = { message, tokens: tokens + estimateFraming(content.length - text.length) + FRAME_TOKENS };
  return message;
}

/** A failed turn is shown once, at its place: what was said, and one line, so that "continue" has its anchor. */
function pushFailure(view: View, partial: string, line: string, at: Placed): PromptMessage {
  const tokens = at.tokens + estimateTokens(line);
  return pushOwn(view, partial === '' ? line : `${partial}\n${line}`, { ...at, tokens });
}

function pushOwn(view: View, text: string, { id: event, seqs, tokens }: Placed): PromptMessage {
  const message: PromptMessage = { role: 'assistant', content: text.toWellFormed(), seqs };
  pushSlot(view, {
    message,
    tokens: tokens + FRAME_TOKENS,
    layer: 'history',
    part: null,
    event,
    at: null,
    step: null,
    artifact: null,
  });
  return message;
}
