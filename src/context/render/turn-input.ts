import type { Event, PromptMessage } from '../../events/index.ts';
import {
  type Reader,
  EARLIER,
  MARKED_LINES,
  PLAIN_LINES,
  type LineRules,
  blockLines,
  indentsIn,
  isTimed,
  timedContent,
  timeOf,
} from './lines.ts';
import { estimateMarks, estimateTokens, FRAME_TOKENS, IMAGE_TOKENS } from '../budget/tokens.ts';
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
import { blockOf } from '../text/marks.ts';
import { atOnce, type Steps } from '../text/steps.ts';

export { dateOf, minute } from './lines.ts';

/** The user messages of a view: lines of attributed text, alone or gathered in one block. */

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

/** The first message of a conversation is a user's. */
function withoutRole(part: Part): Part {
  const { as: _, ...rest } = part;
  return rest;
}

function seqsOf(part: Part): number[] {
  return part.plain ? [part.plain.seq] : linesOf(part).map(({ seq }) => seq);
}

/** Words are counted; images and framing are estimated. */
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
  const bare = content.length - length - live.length - (isEarlier ? EARLIER.length : 0) - indents;
  // In a block, the end of a line is one token, if not with the sign before it.
  const framing = estimateMarks(bare) + part.missed.length + (isEarlier ? estimateTokens(EARLIER) : 0);
  return words + framing + liveTokens(part, live) + imagesIn(part).length * IMAGE_TOKENS + FRAME_TOKENS;
}

/** Bytes of prose per token, rounded down. */
const PROSE_BYTES = 3;

/** Tokens of a rendered live block: its keys and times as framing, retrieved events as prose. */
export function liveTokens(part: Part, text: string): number {
  if (text === '') return 0;
  const memories = part.live?.items[MEMORIES] ?? '';
  const framing = estimateMarks(text.length - memories.length);
  return framing + Math.ceil(Buffer.byteLength(memories) / PROSE_BYTES);
}

/** Text of a last message without content: providers require that a request does not end with the model's own words. */
const NOTHING_SAID = '[nothing new was said: go on]';

export function renderPart(part: Part, secret: string): string {
  return atOnce(renderSteps(part, secret));
}

function* renderSteps(part: Part, secret: string): Steps<string> {
  if (part.plain) return plainContent(part, part.plain, secret);
  return withLiveText((yield* renderBlock(part, secret)) ?? NOTHING_SAID, part, secret);
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

/** A rendered message without its live block. */
export function withoutLive(content: string, live: string): string {
  return live === '' ? content : content.slice(0, content.length - live.length - LIVE_GAP.length);
}

/** The handoff summaries, then the missed lines. */
function* renderBlock(part: Part, secret: string): Steps<string | null> {
  const parts = part.handoffs.map(({ content }) => content);
  const [first] = part.missed;
  if (first) {
    const lines = yield* joinedLines(blockLines(part));
    parts.push(part.framing ? lines : blockOf(lines, markKey(secret, `missed ${first.seq}`)));
  }
  return parts.length > 0 ? parts.join('\n') : null;
}

/** Lines joined in one step. */
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

/** Only user messages may have images. */
function withRole(part: Part, events: readonly Event[], { view }: Reader): Part {
  const isOfPeers = events.every(({ author }) => author.kind === 'agent');
  return view.peers === 'system' && isOfPeers && imagesIn(part).length === 0
    ? { ...part, as: 'system' }
    : part;
}

/** An input of the turn that is not its last. */
export function earlierPart(event: Event, reader: Reader): Part {
  return plainPart(rulesOf(reader).earlier(event, reader), reader);
}

function plainPart(line: Line, reader: Reader): Part {
  const { framing } = reader.view;
  const part = { plain: line, handoffs: [], missed: [], live: null, told: null };
  return framing === 'plain' ? { ...part, framing } : part;
}

/** Everything said since the agent last spoke, in one block, behind the handoff summaries. */
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

/** The live block that was written last: it is rendered, counted and hashed one after the other. */
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
