import type { Event, EventOf } from '../../events/index.ts';
import { escapeAttached, MAYBE_HEADER } from '../fence.ts';
import { imagesOf, visibleText, visibleTokens } from '../event-text.ts';
import type { Framed, Line } from '../slot.ts';
import type { Reader } from './attribution.ts';

/** The lines of user messages, by the rules of one framing. */
export interface LineRules {
  /** An event as a separate message. */
  verbatim: (event: Event, reader: Reader) => Line;
  /** An input of the turn before the last one. */
  earlier: (event: Event, reader: Reader) => Line;
  /** An event in the block of missed lines. */
  missed: (event: Event, reader: Reader) => Line;
  /** A handoff to the reader. */
  handoff: (event: Event, reader: Reader) => Line;
}

export function lineOf(event: Event, framed: Framed): Line {
  const { content, from, to } = framed;
  const line = { content, from, to, event: event.id, seq: event.seq, tokens: visibleTokens(event) };
  if (event.kind !== 'message' || !event.body.attachments) return line;
  const images = imagesOf(event);
  return images.length > 0 ? { ...line, images } : line;
}

export function shownText(event: Event): string {
  if (event.kind === 'tool.result') return event.body.content;
  if (event.kind !== 'message') return visibleText(event) ?? '';
  const { content, attachments } = event.body;
  const isPlain = attachments === undefined && !MAYBE_HEADER.test(content);
  return visibleText(isPlain ? event : withoutForgedLines(event)) ?? '';
}

/** Escapes lines that look like attachments, so that only real attachments have such lines. */
function withoutForgedLines(event: EventOf<'message'>): Event {
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

/** What a change of phase says of itself. */
export function phaseWords({ body: { phase, from } }: EventOf<'phase.changed'>): string {
  const ended = from === undefined ? '' : ` and ended ${phaseName(from)}`;
  return `began the phase ${phaseName(phase)}${ended}`;
}

/** A name for a line that Troupe writes: it can neither end the line nor pass for a header or a fence. */
function phaseName(name: string): string {
  return name.replace(/\s+/g, ' ').replace(/[\p{C}\p{Zl}\p{Zp}[\]<>]/gu, '');
}

export function lateWords({ body }: EventOf<'tool.result'>): string {
  return `late result of ${body.name.replace(/[^A-Za-z0-9_.:-]/g, '_').slice(0, 64)}`;
}

/** The largest time a Date can hold. Imported events may name a later one. */
const LAST_TIME = 8.64e15;

const MINUTE_MS = 60_000;
/** The minute that was written last: the next line mostly is of the same. */
let written = { number: Number.NaN, text: '' };

/** UTC to the minute, as 2026-11-21T22:05Z. */
export function minute(at: number): string {
  const number = Math.floor(at / MINUTE_MS);
  if (number !== written.number) {
    const text = dateOf(at)
      .toISOString()
      .replace(/:\d\d\.\d+Z$/, 'Z');
    written = { number, text };
  }
  return written.text;
}

export function dateOf(at: number): Date {
  return new Date(Math.min(at, LAST_TIME));
}
