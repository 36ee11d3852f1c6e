import type { Event, EventOf, LiveItems } from '../../events/index.ts';
import {
  escapeAttached,
  MAYBE_HEADER,
  escapeWords,
  markEnds,
  MAYBE_WORDS,
  escapeHeads,
  plainHead,
  RUNTIME,
  indented,
} from '../text/marks.ts';
import {
  imagesOf,
  visibleText,
  visibleTokens,
  eventText,
  type Telling,
  toldText,
} from '../text/event-text.ts';
import { type Framed, type Line, type View, frame, type Part } from '../view/view.ts';
import { agentLabel, hasSeveralPeople, isPerson, personLabel, systemLabel } from '../text/people.ts';
import { markKey } from '../text/hash.ts';

/** How one framing renders lines of user messages. */
export interface LineRules {
  /** An event as a separate message. */
  verbatim: (event: Event, reader: Reader) => Line;
  /** An input of the turn before the last one. */
  earlier: (event: Event, reader: Reader) => Line;
  /** An event as a line in the block of missed lines. */
  missed: (event: Event, reader: Reader) => Line;
  /** A handoff to the reader. */
  handoff: (event: Event, reader: Reader) => Line;
}

function lineOf(event: Event, framed: Framed): Line {
  const { content, from, to } = framed;
  const line = { content, from, to, event: event.id, seq: event.seq, tokens: visibleTokens(event) };
  if ((event.kind !== 'message' && event.kind !== 'delegation.opened') || !event.body.attachments)
    return line;
  const images = imagesOf(event);
  return images.length > 0 ? { ...line, images } : line;
}

function shownText(event: Event): string {
  if (event.kind === 'tool.result') return event.body.content;
  if (event.kind !== 'message' && event.kind !== 'delegation.opened') return visibleText(event) ?? '';
  const words = event.kind === 'message' ? event.body.content : event.body.task;
  const isPlain = event.body.attachments === undefined && !MAYBE_HEADER.test(words);
  return visibleText(isPlain ? event : withoutForgedLines(event)) ?? '';
}

/** Escapes lines of an author that look like attachments, so that only real attachments have such lines. */
function withoutForgedLines(event: EventOf<'message'> | EventOf<'delegation.opened'>): Event {
  const { attachments } = event.body;
  const content = event.kind === 'message' ? event.body.content : event.body.task;
  const own = escapeAttached(content);
  const isText = attachments?.some(({ type }) => type === 'text') ?? false;
  if (own === content && !isText) return event;
  const rest = attachments && {
    attachments: attachments.map((each) =>
      each.type === 'text' ? { ...each, text: escapeAttached(each.text) } : each,
    ),
  };
  return event.kind === 'message'
    ? { ...event, body: { ...event.body, content: own, ...rest } }
    : { ...event, body: { ...event.body, task: own, ...rest } };
}

function phaseWords({ body: { phase, from } }: EventOf<'phase.changed'>): string {
  const ended = from === undefined ? '' : ` and ended ${phaseName(from)}`;
  return `began the phase ${phaseName(phase)}${ended}`;
}

/** The name of a phase, cleaned so that it cannot end Troupe's line or pass for a header or a fence. */
function phaseName(name: string): string {
  return name.replace(/\s+/g, ' ').replace(/[\p{C}\p{Zl}\p{Zp}[\]<>]/gu, '');
}

function lateWords({ body }: EventOf<'tool.result'>): string {
  return `late result of ${toolShown(body.name)}`;
}

function toolShown(name: string): string {
  return name.replace(/[^A-Za-z0-9_.:-]/g, '_').slice(0, 64);
}

/** Whether the result belongs to another agent, so that the reader sees it as a result of others. */
function isToldTo(event: Event, { view }: Reader): event is Telling {
  const { author, to } = event;
  return (author.kind !== 'agent' || author.id !== view.agent) && !to.includes(view.agent);
}

/** Head of a result of others: whose result it is, and of what. */
function toldHead(event: Telling, reader: Reader): string {
  const by = speaker(event, reader);
  switch (event.kind) {
    case 'tool.result': {
      const { outcome, name } = event.body;
      return `${by} called ${toolShown(name)}${outcome === 'done' ? '' : ` (${outcome})`}`;
    }
    case 'approval.decided':
      return `${by} ${event.body.outcome} a call of ${owners(event)}`;
    case 'delegation.ended':
      return `${by} ${event.body.outcome === 'done' ? 'finished' : 'failed at'} a task of ${owners(event)}`;
  }
}

function owners({ to }: Event): string {
  return to.map((agent) => `@${agentLabel(agent)}`).join(', ');
}

/** Characters per token of arguments, which are JSON. */
const CHARS_OF_TOKEN = 3;

/** A line with a result of others. It can be pruned like an output, and its tokens include the arguments of the call. */
function toldLine(event: Telling, line: Line): Line {
  const added = Math.max(0, toldText(event).length - eventText(event).length);
  const tokens = line.tokens + Math.ceil(added / CHARS_OF_TOKEN);
  if (event.kind === 'approval.decided') return { ...line, tokens };
  if (event.kind === 'delegation.ended')
    return { ...line, tokens, output: { of: `task ${event.body.delegation}`, id: event.id } };
  const { name, artifact = event.id } = event.body;
  return { ...line, tokens, output: { of: toolShown(name), id: artifact } };
}

/** The largest time a Date can hold. Imported events may name a later one. */
const LAST_TIME = 8.64e15;

const MINUTE_MS = 60_000;
/** Cache of the minute formatted last, because consecutive lines are often of the same minute. */
let written = { number: Number.NaN, text: '' };

/** A time in UTC to the minute: `2026-11-21T22:05Z`. */
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

/** The agent that reads a prompt, and the people known when the prompt was made. */
export interface Reader {
  view: Pick<View, 'agent' | 'secret' | 'people' | 'peers' | 'framing'>;
  upTo: number;
  /** Whether several people have spoken. If so, new lines have their names. */
  named: boolean;
  /** Cache of the labels of people, by id and name. A label is the same for all events up to `upTo`. */
  labels: Map<string, string>;
}

export function readerAt(view: Reader['view'], upTo: number): Reader {
  return { view, upTo, named: hasSeveralPeople(view.people, upTo), labels: new Map() };
}

function target(event: Event): string {
  if (event.to.length === 0) return '';
  return `>${(event.formerly?.to ?? event.to).map((agent) => `@${agentLabel(agent)}`).join(', ')}`;
}

/** The recipient in a label; null if there is none or several. */
export function recipientIn(label: string): string | null {
  const at = label.indexOf('>');
  return at === -1 || label.includes(',', at) ? null : label.slice(at + 1);
}

function speaker(event: Event, { view, upTo, labels }: Reader): string {
  const { author } = event;
  if (author.kind === 'agent') return `@${agentLabel(event.formerly?.author ?? author.id)}`;
  if (author.kind === 'system') return systemLabel(event);
  const key = `${author.id}\n${author.name}`;
  const known = labels.get(key);
  if (known !== undefined) return known;
  const label = personLabel(view.people, author, upTo);
  labels.set(key, label);
  return label;
}

/**
 * Who speaks, and to whom if not to the reader. Null if the text needs no name, because the only person speaks to this agent
 * or to all.
 */
function labelOf(event: Event, reader: Reader): string | null {
  const toOthers = event.to.length > 0 && !event.to.includes(reader.view.agent);
  if (event.author.kind === 'user' && !toOthers && !reader.named) return null;
  return `${speaker(event, reader)}${toOthers ? target(event) : ''}`;
}

/** A label for lists: always present, with all recipients. */
function listLabel(event: Event, reader: Reader): string {
  return `${speaker(event, reader)}${target(event)}`;
}

/**
 * Matches everything that could be a name, because a person with this name may speak later, and their lines would then look
 * like this text. Attachment lines are not names; see `messageText`.
 */
const MAY_BE_NAME = /^(?!(?:image|file|text): )(?=\P{L}*\p{L}.*\p{L})[^"{}=;|]+$/u;

/** Returns a test of whether a text in brackets could be read as the name of a person. */
function nameTest({ view, upTo }: Reader): (name: string) => boolean {
  return (name) => MAY_BE_NAME.test(name) || isPerson(view.people, name, upTo);
}

/** What the head of a handoff says after the names. */
export const HANDED = ' handed this conversation over to you';

/** The framing with marks: one mark around a separate message, and one around a whole block. */
export const MARKED_LINES: LineRules = {
  verbatim: markedVerbatim,
  earlier: markedEarlier,
  missed: markedMissed,
  handoff: (event, reader) => {
    const head = `${listLabel(event, reader)}${HANDED}`;
    return lineOf(event, marked(head, event, eventText(event), reader));
  },
};

function markedVerbatim(event: Event, reader: Reader): Line {
  if ('told' in event.body && isToldTo(event, reader)) {
    const head = toldHead(event, reader);
    return toldLine(event, lineOf(event, marked(head, event, toldText(event), reader)));
  }
  const head = event.kind === 'message' ? null : headOf(event, reader);
  if (head !== null) return lineOf(event, marked(head, event, eventText(event), reader));
  return said(event, reader, labelOf(event, reader));
}

/** An earlier input, named with all recipients, so that the reader finds itself among them. The only person has no name. */
function markedEarlier(event: Event, reader: Reader): Line {
  const alone = markedVerbatim(event, reader);
  if (alone.by === undefined) return addressedEarlier(alone);
  return said(event, reader, listLabel(event, reader));
}

export const EARLIER = '(addressed to you earlier)\n';

/** Adds to a line without a name that it was addressed to the reader. */
function addressedEarlier(line: Line): Line {
  const { content, from, to } = line;
  return { ...line, content: EARLIER + content, from: from + EARLIER.length, to: to + EARLIER.length };
}

/** Head that says what an event is. Null for events that are somebody's words. */
function headOf(event: Event, reader: Reader): string | null {
  if (event.kind === 'phase.changed')
    return `${listLabel(event, reader)} ${phaseWords(event)}; what came before it`;
  if (event.kind === 'command') return 'reminder';
  return event.kind === 'tool.result' ? lateWords(event) : null;
}

function said(event: Event, reader: Reader, label: string | null): Line {
  const text = shownText(event);
  const isPlain = !MAYBE_WORDS.test(text);
  if (label === null) {
    const words = isPlain ? text.toWellFormed() : escapeWords(text, nameTest(reader));
    return lineOf(event, { content: words, from: 0, to: words.length });
  }
  const framed =
    event.author.kind === 'user'
      ? frame(`[${label}] `, isPlain ? text.toWellFormed() : escapeWords(text, nameTest(reader)))
      : marked(label, event, text, reader);
  return { ...lineOf(event, framed), by: label, at: minute(event.at) };
}

/** A line without a mark of its own: the mark is around the block, and `blockLines` writes the beginning of each line. */
function markedMissed(event: Event, reader: Reader): Line {
  if ('told' in event.body && isToldTo(event, reader)) {
    const by = toldHead(event, reader);
    const words = frame(`[${by}] `, escapeWords(toldText(event)));
    return toldLine(event, { ...lineOf(event, words), by, at: minute(event.at) });
  }
  const head = headOf(event, reader);
  const by = head ?? listLabel(event, reader);
  const text =
    head === null ? escapeWords(shownText(event), nameTest(reader)) : escapeWords(eventText(event));
  return { ...lineOf(event, frame(`[${by}] `, text)), by, at: minute(event.at) };
}

function marked(head: string, { seq }: Event, text: string, { view }: Reader): Framed {
  const [open, close] = markEnds(head, markKey(view.secret, `${seq}`));
  return frame(open, escapeWords(text), close);
}

/** The plain framing: a head above the words, and no mark after them. */
export const PLAIN_LINES: LineRules = {
  verbatim: plainVerbatim,
  earlier: plainEarlier,
  missed: (event, reader) => {
    if ('told' in event.body && isToldTo(event, reader)) return plainlyTold(event, reader);
    const head = headOf(event, reader);
    if (head !== null) return ofRuntime(head, event);
    return plainlySaid(event, reader, listLabel(event, reader));
  },
  handoff: (event, reader) => ofRuntime(`${listLabel(event, reader)}${HANDED}`, event),
};

function plainVerbatim(event: Event, reader: Reader): Line {
  if ('told' in event.body && isToldTo(event, reader)) return plainlyTold(event, reader);
  const head = headOf(event, reader);
  return head === null ? plainlySaid(event, reader, labelOf(event, reader)) : ofRuntime(head, event);
}

function plainEarlier(event: Event, reader: Reader): Line {
  const alone = plainVerbatim(event, reader);
  return alone.by === undefined
    ? addressedEarlier(alone)
    : plainlySaid(event, reader, listLabel(event, reader));
}

function plainlySaid(event: Event, reader: Reader, label: string | null): Line {
  const text = escapeHeads(escapeWords(shownText(event), nameTest(reader)));
  if (label === null) return lineOf(event, frame('', text));
  // The only `>` of a label is before the recipients.
  const by = label.replace('>', ' to ');
  return { ...lineOf(event, frame(`${plainHead(by)}\n`, text)), by, at: minute(event.at) };
}

function plainlyTold(event: Telling, reader: Reader): Line {
  return toldLine(event, ofRuntime(toldHead(event, reader), event, toldText(event)));
}

function ofRuntime(head: string, event: Event, words = eventText(event)): Line {
  const by = head === 'reminder' ? RUNTIME : `${RUNTIME}, ${head.replace('>', ' to ')}`;
  const text = escapeHeads(escapeWords(words));
  return { ...lineOf(event, frame(`${plainHead(by)}\n`, text)), by, at: minute(event.at) };
}

/** A time is shown after the name of a speaker, and only if it adds to the time shown last. */

const MINUTE = /^(\d{4}-)(\d\d-\d\d)T(\d\d:\d\d)Z$/;
/** A time of a live item may have a person's local time after it, in brackets. */
const WITH_LOCAL = /^(\S+)( \(.*\))$/;

/** Lines of a block show no time within this many minutes after the last one shown. */
const CLOSE_MINUTES = 10;

/** A time without what the last one shown has told: `10:12`, `11-21 10:12` or `2026-11-21 10:12`; '' for the same minute. */
function timeShown(at: string, told: string | null): string {
  const [, utc, local] = WITH_LOCAL.exec(at) ?? [];
  if (utc !== undefined && local !== undefined) return `${timeShown(utc, told) || clockOf(utc)}${local}`;
  const [, year, day, clock] = MINUTE.exec(at) ?? [];
  if (at === told) return '';
  if (year === undefined || told?.startsWith(`${year}${day}`)) return clock ?? at;
  return told?.startsWith(year) ? `${day} ${clock}` : `${year}${day} ${clock}`;
}

function clockOf(at: string): string {
  return MINUTE.exec(at)?.[3] ?? at;
}

/** Whether both are on the same day, less than `CLOSE_MINUTES` apart. */
function isClose(at: string, told: string | null): boolean {
  if (told === null || at.slice(0, 10) !== told.slice(0, 10)) return false;
  const minutes = (Date.parse(at) - Date.parse(told)) / 60_000;
  return minutes >= 0 && minutes < CLOSE_MINUTES;
}

/** The text to show for a minute after `told`; '' if none. */
export function timeTold(at: string, told: string | null): string {
  return at === '' || isClose(at, told) ? '' : timeShown(at, told);
}

/**
 * The missed lines of a block. Of consecutive lines of a speaker only the first has the name. If the line before addressed
 * only this speaker, `->` replaces the name.
 */
export function* blockLines(part: Part): Generator<string> {
  if (part.framing) return yield* plainBlock(part);
  let before: string | null = null;
  for (const { line, time } of timedLines(part)) {
    const { content, from, to, by = '' } = line;
    const isAnswer: boolean = before !== null && by === recipientIn(before);
    const name = by === before ? '' : isAnswer ? '->' : by;
    before = by;
    const head = name === '->' && time === '' ? name : `[${[name, time].filter(Boolean).join(' ')}]`;
    yield `${head} ${indented(content.slice(from, to))}`;
  }
}

function* plainBlock(part: Part): Generator<string> {
  for (const { line, time } of timedLines(part)) {
    const { content, from, to, by = '' } = line;
    yield `${plainHead(by, time)}\n ${indented(content.slice(from, to))}`;
  }
}

/** The missed lines with the time that each shows. `told`: the last time shown after the line. */
function* timedLines({ missed, told }: Part): Generator<{ line: Line; time: string; told: string | null }> {
  let last = told;
  for (const line of missed) {
    const { at = '' } = line;
    const time = at === '' || isClose(at, last) ? '' : timeShown(at, last);
    if (time !== '') last = at;
    yield { line, time, told: last };
  }
}

/** Characters that a block adds by indenting its texts. They cost no tokens, because a space joins the token of the word. */
export function indentsIn({ missed }: Part): number {
  return missed.reduce(
    (sum, { content, from, to }) => sum + indented(content.slice(from, to)).length - to + from,
    0,
  );
}

/** The last minute shown at the end of a part; null if none was shown. */
export function toldBy(part: Part): string | null {
  const { time } = part.live?.items ?? {};
  return time?.split(' ')[0] ?? toldInBlock(part);
}

function toldInBlock(part: Part): string | null {
  let last = part.told;
  for (const { told } of timedLines(part)) last = told;
  return last;
}

/** The time of a part's live block as shown (null without one), and the other items. */
export function timeOf(part: Part): { time: string | null; items: LiveItems } {
  const { time, ...items } = part.live?.items ?? {};
  return { time: time === undefined ? null : timeShown(time, toldInBlock(part)), items };
}

/** Whether the time of the live block is shown in the line of the speaker. */
export function isTimed({ plain, live }: Part): boolean {
  return plain?.by !== undefined && MINUTE.test(live?.items['time'] ?? '');
}

/** The text of a line with the time after its speaker. */
export function timedContent({ framing }: Part, { content, by = '' }: Line, time: string): string {
  if (time === '') return content;
  if (framing) return plainHead(by, time) + content.slice(plainHead(by).length);
  const end = 1 + by.length;
  return `${content.slice(0, end)} ${time}${content.slice(end)}`;
}
