import {
  type Event,
  type PromptMessage,
  type EventDraft,
  type EventId,
  isAbout,
  messageText,
  type StepBody,
  type ToolResultBody,
  type TurnId,
} from '../../events/index.ts';
import { TEXTS } from '../../events/model-texts.ts';
import {
  type Reader,
  EARLIER,
  HANDED,
  MARKED_LINES,
  PLAIN_LINES,
  type LineRules,
  blockLines,
  indentsIn,
  isTimed,
  timedContent,
  timeOf,
} from './lines.ts';
import {
  estimateMarks,
  estimateTokens,
  FRAME_TOKENS,
  IMAGE_TOKENS,
  estimateFraming,
} from '../budget/tokens.ts';
import {
  imagesIn,
  type Line,
  linesOf,
  type Part,
  type Slot,
  type SlotLayer,
  pushSlot,
  pushSlotSteps,
  type View,
} from '../view/view.ts';
import { HASHED, markKey } from '../text/hash.ts';
import { markedLive, MEMORIES, plainLive } from '../view/live.ts';
import { blockOf, escapeKeyed, escapeWords, mark, escapeHeads, plainNote } from '../text/marks.ts';
import { atOnce, type Steps } from '../text/steps.ts';
import { eventText } from '../text/event-text.ts';

/** Appends a user message to the view: one line of attributed text, or a block of lines. */
export function* pushUser(view: View, given: Part, at: number, layer: SlotLayer = 'history'): Steps<void> {
  const part = view.slots.length === 0 && given.as ? withoutRole(given) : given;
  if (part.plain && part.plain.content.length <= HASHED) {
    const slot = userSlot(view, part, plainContent(part, part.plain, view.secret), { at, layer });
    yield 3 * slot.message.content.length;
    return pushSlot(view, slot);
  }
  const content = yield* renderSteps(part, view.secret);
  yield 2 * content.length;
  yield* pushSlotSteps(view, userSlot(view, part, content, { at, layer }));
}

function userSlot(
  { secret }: View,
  part: Part,
  content: string,
  place: { at: number; layer: SlotLayer },
): Slot {
  const message = messageOf(part, content, seqsOf(part));
  const tokens = partTokens(part, content, secret);
  return { message, tokens, ...place, part, event: null, step: null, artifact: null };
}

export function userMessage(part: Part, secret: string, seqs = seqsOf(part)): PromptMessage {
  return messageOf(part, renderPart(part, secret), seqs);
}

function messageOf(part: Part, content: string, seqs: number[]): PromptMessage {
  if (part.as) return { role: part.as, content, seqs };
  const images = imagesIn(part);
  return images.length > 0
    ? { role: 'user', content, seqs, images: [...images] }
    : { role: 'user', content, seqs };
}

/** The part with the role of a user, which the first message of a conversation must have. */
function withoutRole(part: Part): Part {
  const { as: _, ...rest } = part;
  return rest;
}

function seqsOf(part: Part): number[] {
  return part.plain ? [part.plain.seq] : linesOf(part).map(({ seq }) => seq);
}

/** Tokens of a part: words by their stored counts, images and framing estimated. */
export function partTokens(part: Part, content: string, secret: string): number {
  let words = 0;
  let length = 0;
  for (const { tokens, from, to } of linesOf(part)) {
    words += tokens;
    length += to - from;
  }
  const live = liveText(part, secret);
  const isEarlier = part.plain?.content.startsWith(EARLIER) ?? false;
  const indents = part.missed.length > 0 ? indentsIn(part) : 0;
  const prose = (isEarlier ? EARLIER : '') + HANDED.repeat(part.handoffs.length);
  const bare = content.length - length - live.length - prose.length - indents;
  // A line end in a block takes at most one token.
  const framing = estimateMarks(bare) + part.missed.length + (prose === '' ? 0 : estimateTokens(prose));
  return words + framing + liveTokens(part, live) + imagesIn(part).length * IMAGE_TOKENS + FRAME_TOKENS;
}

/** Bytes of prose per token, rounded down so that estimates are high. */
const PROSE_BYTES = 3;

/** Tokens of a rendered live block: its keys and times as framing, retrieved events as prose. */
export function liveTokens(part: Part, text: string): number {
  if (text === '') return 0;
  const memories = part.live?.items[MEMORIES] ?? '';
  const framing = estimateMarks(text.length - memories.length);
  return framing + Math.ceil(Buffer.byteLength(memories) / PROSE_BYTES);
}

export function renderPart(part: Part, secret: string): string {
  return atOnce(renderSteps(part, secret));
}

function* renderSteps(part: Part, secret: string): Steps<string> {
  if (part.plain) return plainContent(part, part.plain, secret);
  return withLiveText((yield* renderBlock(part, secret)) ?? TEXTS.turn.nothingSaid, part, secret);
}

function plainContent(part: Part, line: Line, secret: string): string {
  const body =
    line.by !== undefined && isTimed(part) ? timedContent(part, line, timeOf(part).time ?? '') : line.content;
  return part.live ? withLiveText(body, part, secret) : body;
}

function withLiveText(body: string, part: Part, secret: string): string {
  const live = liveText(part, secret);
  return live === '' ? body : `${body}${LIVE_GAP}${live}`;
}

const LIVE_GAP = '\n\n';

export function withoutLive(content: string, live: string): string {
  return live === '' ? content : content.slice(0, content.length - live.length - LIVE_GAP.length);
}

function* renderBlock(part: Part, secret: string): Steps<string | null> {
  const parts = part.handoffs.map(({ content }) => content);
  const [first] = part.missed;
  if (first) {
    const lines = yield* joinedLines(blockLines(part));
    parts.push(part.framing ? lines : blockOf(lines, markKey(secret, `missed ${first.seq}`)));
  }
  return parts.length > 0 ? parts.join('\n') : null;
}

const JOINED = 200;

function* joinedLines(lines: Iterable<string>): Steps<string> {
  const texts: string[] = [];
  let some: string[] = [];
  for (const line of lines) {
    some.push(line);
    if (some.length < JOINED) continue;
    const text = some.join('\n');
    texts.push(text);
    some = [];
    yield text.length;
  }
  if (some.length > 0) texts.push(some.join('\n'));
  const all = texts.join('\n');
  yield all.length;
  return all;
}

function rulesOf({ view }: Reader): LineRules {
  return view.framing === 'plain' ? PLAIN_LINES : MARKED_LINES;
}

function toldBefore({ view }: Reader, told: string | null): Pick<Part, 'told' | 'framing'> {
  return view.framing === 'plain' ? { told, framing: view.framing } : { told };
}

/** An event that a turn answers, as a separate message. */
export function verbatimPart(event: Event, reader: Reader): Part {
  return plainPart(rulesOf(reader).verbatim(event, reader), reader);
}

/** An event that no turn answers, as a separate message. */
export function historyPart(event: Event, reader: Reader): Part {
  return withRole(verbatimPart(event, reader), [event], reader);
}

/** Gives a part the role `system` if the agent wants that for words of peers. A part with images stays a user message. */
function withRole(part: Part, events: readonly Event[], { view }: Reader): Part {
  // Outputs of tools must not get more weight than a user's words.
  const isOfPeers = events.every(({ author, kind }) => author.kind === 'agent' && kind !== 'tool.result');
  return view.peers === 'system' && isOfPeers && imagesIn(part).length === 0
    ? { ...part, as: 'system' }
    : part;
}

/** An input of the turn other than the last one. */
export function earlierPart(event: Event, reader: Reader): Part {
  return plainPart(rulesOf(reader).earlier(event, reader), reader);
}

function plainPart(line: Line, reader: Reader): Part {
  const { framing } = reader.view;
  const part = { plain: line, handoffs: [], missed: [], live: null, told: null };
  return framing === 'plain' ? { ...part, framing } : part;
}

/** Everything said since the agent last spoke, in one block, after the handoff summaries. */
export function* blockPart(
  handoffs: readonly Event[],
  missed: readonly Event[],
  reader: Reader,
  told: string | null = null,
): Steps<Part> {
  const rules = rulesOf(reader);
  const lines: { handoffs: Line[]; missed: Line[] } = { handoffs: [], missed: [] };
  for (const event of handoffs) {
    lines.handoffs.push(rules.handoff(event, reader));
    yield LINE_WORK;
  }
  for (const event of missed) {
    const line = rules.missed(event, reader);
    lines.missed.push(line);
    yield LINE_WORK + line.content.length;
  }
  const part = { plain: null, ...lines, live: null, ...toldBefore(reader, told) };
  return handoffs.length + missed.length === 0 || handoffs.length > 0 ? part : withRole(part, missed, reader);
}

/** Cost of a line's header, key and time, in characters. */
export const LINE_WORK = 256;

export function withLive(part: Part, live: NonNullable<Part['live']>, told: string | null): Part {
  return { ...(part.as ? withoutRole(part) : part), live, ...(part.plain && { told }) };
}

/** Cache of the live block rendered last, because its text is needed to render, to count and to hash. */
let written: { part: Part | null; secret: string; text: string } = { part: null, secret: '', text: '' };

export function liveText(part: Part, secret: string): string {
  if (!part.live) return '';
  if (written.part === part && written.secret === secret) return written.text;
  written = { part, secret, text: writeLive(part, part.live, secret) };
  return written.text;
}

function writeLive(part: Part, live: NonNullable<Part['live']>, secret: string): string {
  const { framing } = part;
  const { time, items } = timeOf(part);
  const shown = time !== null && isTimed(part) ? '' : (time ?? '');
  return framing ? plainLive(shown, items) : markedLive(shown, items, { secret, turn: live.turn });
}

/** Whether an own event is rendered. The others are bookkeeping. */
export function isSpoken(event: EventDraft | Event): boolean {
  if (!isAbout(event, 'own')) return false;
  switch (event.kind) {
    case 'message':
      return messageText(event.body).trim() !== '';
    case 'handoff':
      // A handoff in a turn is already shown by the call of its tool.
      return event.turn === undefined;
    case 'step':
      return event.body.calls.length > 0 || event.body.content.trim() !== '';
    case 'tool.result':
    case 'turn.failed':
    case 'turn.aborted':
      return true;
  }
}

/** Whether the event is a note to one step of the running turn. Other agents never see it. */
export function isNote(event: EventDraft | Event): boolean {
  return event.kind === 'injection' && event.body.oneStep;
}

/**
 * Renders an own event: the agent's words, without a name. Null if nothing is rendered. `late`: the result of a call that
 * already has a synthetic one, which is shown as new input and does not change the earlier message.
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
    case 'handoff': {
      const to = ('formerly' in event && event.formerly?.to) || event.to;
      const head = `[handed over to @${to.join(', @')}]\n`;
      const tokens = at.tokens + estimateMarks(head.length);
      return pushOwn(view, head + eventText(event), { ...at, tokens });
    }
    case 'turn.failed':
      return pushFailure(view, event.body.partial, `[this turn failed: ${event.body.code}]`, at);
    case 'turn.aborted':
      return pushFailure(view, event.body.partial, '[interrupted]', at);
  }
}

/** Stores a note, marked like a reminder of the runtime, as the view's note. */
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
 * Shows a failed turn in its place: the words that it produced, and a line of the runtime to which a later "continue" can
 * refer.
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
 * In a prompt the results of a step follow it directly, whatever is between them in the log. Every call has exactly one
 * result, because providers refuse other requests.
 */
const INTERRUPTED_TOKENS = 42;

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

/** An id that is unique within the request. Some vendors reuse ids such as call_0 in every step. */
function uniqueCallId(view: View, id: string): string {
  const { calls } = view;
  let number = calls.get(id) ?? 0;
  let unique = number === 0 ? id : `${id}-${(number += 1)}`;
  while (unique !== id && calls.has(unique)) unique = `${id}-${(number += 1)}`;
  calls.set(id, Math.max(1, number));
  if (unique !== id) calls.set(unique, 1);
  return unique;
}

/** The rendered result. `late`: the call already has a synthetic result. Null: the call is unknown. */
function addResult(view: View, body: ToolResultBody, placed: Placed): PromptMessage | 'late' | null {
  // If calls of one step share an id, their results come in the order of the calls.
  const { group } = view;
  const call = group?.waiting.find(({ written }) => written === body.call);
  if (!group || !call) return view.lost.has(body.call) ? 'late' : null;
  group.waiting.splice(group.waiting.indexOf(call), 1);
  const { id: event, seqs } = placed;
  const message: PromptMessage = {
    role: 'tool',
    call: call.id,
    name: body.name,
    content: body.content.trim() === '' ? TEXTS.turn.noOutput : outputShown(body.content, view),
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

/** Gives every open call a synthetic result. */
export function closeGroup(view: View): void {
  const { group } = view;
  if (!group) return;
  for (const { written, id, name } of group.waiting) {
    view.lost.add(written);
    pushSlot(view, {
      message: { role: 'tool', call: id, name, content: TEXTS.turn.interrupted, failed: true, seqs: [] },
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
