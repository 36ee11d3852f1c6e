import {
  type Event,
  type EventDraft,
  type EventId,
  isAbout,
  messageText,
  type PromptMessage,
  type StepBody,
  type ToolResultBody,
  type TurnId,
} from '../../events/index.ts';
import { estimateFraming, estimateMarks, estimateTokens, FRAME_TOKENS } from '../budget/tokens.ts';
import { eventText } from '../text/event-text.ts';
import { markKey } from '../text/hash.ts';
import { escapeKeyed, escapeWords, mark, escapeHeads, plainNote } from '../text/marks.ts';
import { pushSlot, type View } from '../view/view.ts';

/** Whether an own event has anything to render. The others are bookkeeping. */
export function isSpoken(event: EventDraft | Event): boolean {
  if (!isAbout(event, 'own')) return false;
  switch (event.kind) {
    case 'message':
      return messageText(event.body).trim() !== '';
    case 'handoff':
      // The call of the handoff tool already shows it.
      return event.turn === undefined;
    case 'step':
      return event.body.calls.length > 0 || event.body.content.trim() !== '';
    case 'tool.result':
    case 'turn.failed':
    case 'turn.aborted':
      return true;
  }
}

/** True for a note to one step of the running turn. Other agents never see it. */
export function isNote(event: EventDraft | Event): boolean {
  return event.kind === 'injection' && event.body.oneStep;
}

/**
 * Renders an own event: the agent's words, never prefixed. Null where nothing is rendered. `late` for the result of a
 * call that already has a synthetic one: it becomes news and edits nothing.
 */
export function foldOwn(view: View, event: EventDraft | Event, at: Placed): PromptMessage | 'late' | null {
  if (event.kind === 'message') {
    const text = messageText(event.body);
    return text.trim() === '' ? null : pushOwn(view, text, at);
  }
  if (event.kind === 'injection') return event.body.oneStep ? takeNote(view, eventText(event), at) : null;
  if (!isAbout(event, 'own') || !isSpoken(event)) return null;
  if (event.kind === 'tool.result') return addResult(view, event.body, at);
  switch (event.kind) {
    case 'step':
      view.note = null;
      return openGroup(view, event.body, at);
    case 'handoff':
      return pushOwn(view, `[handed over to @${event.to.join(', @')}]\n${eventText(event)}`, at);
    case 'turn.failed':
      return pushFailure(view, event.body.partial, `[this turn failed: ${event.body.code}]`, at);
    case 'turn.aborted':
      return pushFailure(view, event.body.partial, '[interrupted]', at);
  }
}

/** Marked like a reminder of the runtime. */
function takeNote(view: View, text: string, { id, seqs, tokens }: Placed): PromptMessage {
  const place = `note ${id}`;
  const content = reminder(view, place, text);
  const message: PromptMessage = { role: 'user', content, seqs };
  view.note = { message, tokens: tokens + estimateFraming(content.length - text.length) + FRAME_TOKENS };
  return message;
}

function reminder({ framing, secret }: View, place: string, text: string): string {
  const words = escapeWords(text);
  return framing === 'plain'
    ? plainNote(escapeHeads(words))
    : mark('reminder', markKey(secret, place), words);
}

/**
 * Shows a failed turn in its place: the words that it produced, and a line that a later "continue" can refer to. The
 * line is the runtime's and no word of the agent.
 */
function pushFailure(view: View, partial: string, line: string, at: Placed): PromptMessage {
  if (view.group) closeGroup(view);
  view.note = null;
  const tokens = at.tokens + estimateTokens(line);
  if (partial.trim() === '') return pushRuntime(view, line, { ...at, tokens }, null);
  const said = pushOwn(view, partial, at);
  pushRuntime(view, line, { ...at, seqs: [], tokens: estimateTokens(line) }, at.seqs[0] ?? null);
  return said;
}

/** A line of the runtime, marked like a reminder. */
function pushRuntime(
  view: View,
  line: string,
  { id, seqs, tokens }: Placed,
  place: number | null,
): PromptMessage {
  const content = reminder(view, `failure ${id}`, line);
  const message: PromptMessage = { role: 'user', content, seqs };
  pushSlot(view, {
    message,
    tokens: tokens + estimateMarks(content.length - line.length) + FRAME_TOKENS,
    layer: 'history',
    part: null,
    event: null,
    at: place,
    step: null,
    artifact: null,
  });
  return message;
}

function pushOwn(view: View, text: string, { id: event, seqs, tokens }: Placed): PromptMessage {
  if (view.group) closeGroup(view);
  view.note = null;
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

/**
 * A step and its results stand together in a prompt, whatever lies between them in the log. Every call has exactly one
 * result, or providers refuse the request.
 */
const INTERRUPTED =
  '[no result was recorded: the call was interrupted, or is still running elsewhere. It may have had its effect: do not repeat it, check first. A result that comes later is shown as a new message.]';
const INTERRUPTED_TOKENS = 42;
const NO_OUTPUT = '[no output]';

interface Placed {
  id: EventId;
  seqs: number[];
  tokens: number;
  turn?: TurnId | undefined;
}

function openGroup(view: View, body: StepBody, placed: Placed): PromptMessage {
  closeGroup(view);
  const { id: event, seqs, turn } = placed;
  const calls = body.calls.map((call) => ({ ...call, id: uniqueCallId(view, call.id) }));
  const waiting = body.calls.map(({ id: written, name }, index) => ({
    written,
    id: calls[index]?.id ?? written,
    name,
  }));
  const message: PromptMessage = {
    role: 'assistant',
    content: body.content.toWellFormed(),
    // A step without calls is a plain message.
    ...(calls.length > 0 && { calls }),
    seqs,
    ...(body.reasoning && { reasoning: body.reasoning }),
  };
  const step = turn === undefined ? null : { turn, index: body.index };
  const tokens = placed.tokens + FRAME_TOKENS;
  pushSlot(view, { message, tokens, layer: 'history', part: null, event, at: null, step, artifact: null });
  if (calls.length > 0) view.group = { waiting, step };
  return message;
}

/** Vendors reuse ids such as call_0 in every step. Within one request each id must be unique. */
function uniqueCallId(view: View, id: string): string {
  const { calls } = view;
  let number = calls.get(id) ?? 0;
  let unique = number === 0 ? id : `${id}-${(number += 1)}`;
  while (unique !== id && calls.has(unique)) unique = `${id}-${(number += 1)}`;
  calls.set(id, Math.max(1, number));
  if (unique !== id) calls.set(unique, 1);
  return unique;
}

/** The rendered result. `late` for a call that already has a synthetic result, null for an unknown call. */
function addResult(view: View, body: ToolResultBody, placed: Placed): PromptMessage | 'late' | null {
  // Two calls of one step may share an id. Their results come in the order of the calls.
  const { group } = view;
  const call = group?.waiting.find(({ written }) => written === body.call);
  if (!group || !call) return view.lost.has(body.call) ? 'late' : null;
  group.waiting.splice(group.waiting.indexOf(call), 1);
  const { id: event, seqs } = placed;
  const message: PromptMessage = {
    role: 'tool',
    call: call.id,
    name: body.name,
    content: body.content.trim() === '' ? NO_OUTPUT : outputShown(body.content, view),
    failed: body.outcome !== 'done',
    seqs,
  };
  const tokens = placed.tokens + FRAME_TOKENS;
  const artifact = body.artifact ?? null;
  pushSlot(view, {
    message,
    tokens,
    layer: 'history',
    part: null,
    event,
    at: null,
    step: group.step,
    artifact,
  });
  if (group.waiting.length === 0) view.group = null;
  return message;
}

function outputShown(text: string, { framing }: View): string {
  return framing === 'plain' ? escapeHeads(escapeKeyed(text)) : escapeKeyed(text);
}

/** Gives every open call its synthetic result. */
export function closeGroup(view: View): void {
  const { group } = view;
  if (!group) return;
  for (const { written, id, name } of group.waiting) {
    view.lost.add(written);
    pushSlot(view, {
      message: { role: 'tool', call: id, name, content: INTERRUPTED, failed: true, seqs: [] },
      tokens: INTERRUPTED_TOKENS + FRAME_TOKENS,
      layer: 'history',
      part: null,
      event: null,
      at: null,
      step: group.step,
      artifact: null,
    });
  }
  view.group = null;
}
