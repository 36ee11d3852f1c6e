import type { Event, EventOf, LiveItems, PromptMessage, TurnId } from '../events/index.ts';
import { fenceText, listHeader, type Reader, renderOther } from './render/attribution.ts';
import { estimateFraming, estimateTokens, FRAME_TOKENS, IMAGE_TOKENS } from './tokens.ts';
import { eventText, imagesOf, visibleText, visibleTokens } from './event-text.ts';
import { escapeAttached, escapeMarks, fence, fenceEnds } from './fence.ts';
import { frame, type Framed, imagesIn, type Line, linesOf, type Part, type SlotLayer } from './slot.ts';
import { fenceKey } from './hash.ts';
import { MEMORIES, renderLive } from './live.ts';
import { atOnce, type Steps } from './steps.ts';
import { pushSlotSteps, type View } from './view.ts';

/** The user messages of a view: lines of attributed, fenced text, alone or gathered in one block. */

const AWAY = 'While you were away:';
const EARLIER = '(addressed to you earlier)\n';

export function* pushUser(view: View, part: Part, at: number, layer: SlotLayer = 'history'): Steps<void> {
  const content = yield* renderSteps(part, view.secret);
  const message = messageOf(part, content, seqsOf(part));
  yield content.length;
  const tokens = partTokens(part, content, view.secret);
  yield content.length;
  yield* pushSlotSteps(view, { message, tokens, layer, part, event: null, at, step: null, artifact: null });
}

export function userMessage(part: Part, secret: string, seqs = seqsOf(part)): PromptMessage {
  return messageOf(part, renderPart(part, secret), seqs);
}

function messageOf(part: Part, content: string, seqs: number[]): PromptMessage {
  const images = imagesIn(part);
  return { role: 'user', content, seqs, ...(images.length > 0 && { images }) };
}

function seqsOf(part: Part): number[] {
  return linesOf(part).map(({ seq }) => seq);
}

/** Words are counted; images and framing are estimated. */
export function partTokens(part: Part, content: string, secret: string): number {
  const lines = linesOf(part);
  const words = lines.reduce((sum, { tokens }) => sum + tokens, 0);
  const length = lines.reduce((sum, { from, to }) => sum + to - from, 0);
  const live = liveText(part, secret);
  const prose = part.plain?.content.startsWith(EARLIER) ? EARLIER : '';
  const framing =
    estimateFraming(content.length - length - live.length - prose.length) + estimateTokens(prose);
  return words + framing + liveTokens(part, live) + imagesIn(part).length * IMAGE_TOKENS + FRAME_TOKENS;
}

/** Bytes of prose per token, rounded down. */
const PROSE_BYTES = 3;

/** Tokens of a rendered live block: its keys and times as framing, retrieved events as prose. */
export function liveTokens({ live }: Part, text: string): number {
  const memories = live?.items[MEMORIES] ?? '';
  return (
    estimateFraming(text.length - memories.length) + Math.ceil(Buffer.byteLength(memories) / PROSE_BYTES)
  );
}

/** Text of a last message without content: providers require that a request does not end with the model's own words. */
const NOTHING_SAID = '[nothing new was said: go on]';

export function renderPart(part: Part, secret: string): string {
  return atOnce(renderSteps(part, secret));
}

function* renderSteps(part: Part, secret: string): Steps<string> {
  const body = part.plain ? part.plain.content : ((yield* renderBlock(part, secret)) ?? NOTHING_SAID);
  const live = liveText(part, secret);
  return live === '' ? body : `${body}${LIVE_GAP}${live}`;
}

const LIVE_GAP = '\n\n';

/** A rendered message without its live block. */
export function withoutLive(content: string, live: string): string {
  return live === '' ? content : content.slice(0, content.length - live.length - LIVE_GAP.length);
}

/** Lines joined in one step. */
const JOINED = 200;

/** The handoff summaries, then the missed lines. */
function* renderBlock({ handoffs, missed }: Part, secret: string): Steps<string | null> {
  const parts = handoffs.map(({ content }) => content);
  const [first] = missed;
  if (first) {
    let lines = AWAY;
    for (let from = 0; from < missed.length; from += JOINED) {
      const some = missed.slice(from, from + JOINED).map(({ content }) => content);
      const text = some.join('\n');
      lines += `\n${text}`;
      yield text.length;
    }
    parts.push(fence('missed', fenceKey(secret, `missed ${first.seq}`), lines));
  }
  return parts.length > 0 ? parts.join('\n') : null;
}

export function plainPart(line: Line): Part {
  return { plain: line, handoffs: [], missed: [], live: null };
}

/** Everything said since the agent last spoke, in one block, behind the handoff summaries. */
export function* blockPart(
  handoffs: readonly Event[],
  missed: readonly Event[],
  reader: Reader,
): Steps<Part> {
  const lines: { handoffs: Line[]; missed: Line[] } = { handoffs: [], missed: [] };
  for (const event of handoffs) {
    lines.handoffs.push(handoffLine(event, reader));
    yield LINE_WORK;
  }
  for (const event of missed) {
    const line = awayLine(event, reader);
    lines.missed.push(line);
    yield LINE_WORK + line.content.length;
  }
  return { plain: null, ...lines, live: null };
}

/** Cost of a line's header, key and time, in characters. */
export const LINE_WORK = 256;

export function withLive(part: Part, items: LiveItems, turn: TurnId): Part {
  return { ...part, live: { items, turn } };
}

export function liveText({ live }: Part, secret: string): string {
  return live ? renderLive(live.items, secret, live.turn) : '';
}

/** An event as a separate message. */
export function verbatim(event: Event, reader: Reader, head = ''): Line {
  if (event.kind === 'phase.changed') return phaseLine(event, reader, head);
  if (event.kind === 'command') return retryLine(event, reader);
  return event.kind === 'tool.result'
    ? lateResult(event, reader, head)
    : lineOf(event, renderOther(event, shownText(event, reader), reader, head));
}

export function earlierTrigger(event: Event, reader: Reader): Line {
  return verbatim(event, reader, EARLIER);
}

function awayLine(event: Event, reader: Reader): Line {
  if (event.kind === 'tool.result') return lateResult(event, reader);
  if (event.kind === 'phase.changed') return phaseLine(event, reader, `${minute(event.at)} `);
  if (event.kind === 'command') return retryLine(event, reader);
  const head = `${minute(event.at)} ${listHeader(event, reader)}\n`;
  return lineOf(event, fenceText(event, shownText(event, reader), reader, head));
}

function handoffLine(event: Event, reader: Reader): Line {
  const head = `${listHeader(event, reader)} handed this conversation over to you:\n`;
  const [open, close] = fenceEnds('handoff', fenceKey(reader.view.secret, `${event.seq}`));
  return lineOf(event, frame(head + open, escapeMarks(eventText(event)), close));
}

/** Always fenced: the summary holds words of others. */
function phaseLine(event: EventOf<'phase.changed'>, reader: Reader, head: string): Line {
  const { phase, from } = event.body;
  const ended = from === undefined ? '' : ` and ended ${phaseName(from)}`;
  const text = `${head}${listHeader(event, reader)} began the phase ${phaseName(phase)}${ended}. What came before it:\n`;
  const [open, close] = fenceEnds('handoff', fenceKey(reader.view.secret, `${event.seq}`));
  return lineOf(event, frame(text + open, escapeMarks(eventText(event)), close));
}

/** Marked as a reminder of the runtime, because no participant said it. */
function retryLine(event: EventOf<'command'>, { view }: Reader): Line {
  const [open, close] = fenceEnds('reminder', fenceKey(view.secret, `retry ${event.seq}`));
  return lineOf(event, frame(open, escapeMarks(eventText(event)), close));
}

/** A name for a line that Troupe writes: it can neither end the line nor pass for a header or a fence. */
function phaseName(name: string): string {
  return name.replace(/\s+/g, ' ').replace(/[\p{C}\p{Zl}\p{Zp}[\]<>]/gu, '');
}

function lateResult(event: EventOf<'tool.result'>, reader: Reader, head = ''): Line {
  const tool = event.body.name.replace(/[^A-Za-z0-9_.:-]/g, '_').slice(0, 64);
  return lineOf(
    event,
    fenceText(event, shownText(event, reader), reader, `${head}[late result of ${tool}]\n`),
  );
}

function shownText(event: Event, { rendering }: Reader): string {
  if (event.kind === 'tool.result') return event.body.content;
  return visibleText(rendering >= 2 ? withoutForgedLines(event) : event) ?? '';
}

/** Escapes lines that look like attachments, so that only real attachments have such lines. */
function withoutForgedLines(event: Event): Event {
  if (event.kind !== 'message') return event;
  const { content, attachments } = event.body;
  const own = escapeAttached(content);
  const isText = attachments?.some(({ type }) => type === 'text') ?? false;
  if (own === content && !isText) return event;
  const rest = attachments && {
    attachments: attachments.map((each) =>
      each.type === 'text' ? { ...each, text: escapeAttached(each.text) } : each,
    ),
  };
  return { ...event, body: { ...event.body, content: own, ...rest } };
}

function lineOf(event: Event, framed: Framed): Line {
  const images = imagesOf(event);
  const line = { ...framed, event: event.id, seq: event.seq, tokens: visibleTokens(event) };
  return images.length > 0 ? { ...line, images } : line;
}

/** The largest time a Date can hold. Imported events may name a later one. */
const LAST_TIME = 8.64e15;

/** UTC to the minute, as 2026-11-21T22:05Z. */
export function minute(at: number): string {
  return dateOf(at)
    .toISOString()
    .replace(/:\d\d\.\d+Z$/, 'Z');
}

export function dateOf(at: number): Date {
  return new Date(Math.min(at, LAST_TIME));
}
