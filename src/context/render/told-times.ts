import type { LiveItems } from '../../events/index.ts';
import { indented } from '../mark.ts';
import { plainHead } from '../plain.ts';
import type { Line, Part } from '../slot.ts';
import { recipientIn } from './attribution.ts';

/** A time stands behind the name of a speaker, and only where it says more than the one told last. */

const MINUTE = /^(\d{4}-)(\d\d-\d\d)T(\d\d:\d\d)Z$/;
/** A live item may add the time of a person. */
const WITH_LOCAL = /^(\S+)( \(.*\))$/;

/** Minutes after the time told last, within which the lines of a block tell none. */
const CLOSE_MINUTES = 10;

/** `10:12` on the day told last, `11-21 10:12` in that year, else `2026-11-21 10:12`; '' for the minute told last. */
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

/** Whether the two are on one day, and the later one hardly later. */
function isClose(at: string, told: string | null): boolean {
  if (told === null || at.slice(0, 10) !== told.slice(0, 10)) return false;
  const minutes = (Date.parse(at) - Date.parse(told)) / 60_000;
  return minutes >= 0 && minutes < CLOSE_MINUTES;
}

/**
 * The missed lines of a block. Only the first of a speaker's lines in a row has the name; the only one whom the line
 * before addressed has none.
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

/** Only heads begin at the margin. */
function* plainBlock(part: Part): Generator<string> {
  for (const { line, time } of timedLines(part)) {
    const { content, from, to, by = '' } = line;
    yield `${plainHead(by, time)}\n ${indented(content.slice(from, to))}`;
  }
}

/** The missed lines with the time that each tells, and the last one told behind it. */
function* timedLines({ missed, told }: Part): Generator<{ line: Line; time: string; told: string | null }> {
  let last = told;
  for (const line of missed) {
    const { at = '' } = line;
    const time = at === '' || isClose(at, last) ? '' : timeShown(at, last);
    if (time !== '') last = at;
    yield { line, time, told: last };
  }
}

/** Characters that a block adds to its texts by indenting them. A space before a word takes no token of its own. */
export function indentsIn({ missed }: Part): number {
  return missed.reduce(
    (sum, { content, from, to }) => sum + indented(content.slice(from, to)).length - to + from,
    0,
  );
}

/** The last minute told when a part has been read; null if none was. */
export function toldBy(part: Part): string | null {
  const { time } = part.live?.items ?? {};
  return time?.split(' ')[0] ?? toldInBlock(part);
}

function toldInBlock(part: Part): string | null {
  let last = part.told;
  for (const { told } of timedLines(part)) last = told;
  return last;
}

/** The time of a part's live block as shown, null if it tells none, and the other items. */
export function timeOf(part: Part): { time: string | null; items: LiveItems } {
  const { time, ...items } = part.live?.items ?? {};
  return { time: time === undefined ? null : timeShown(time, toldInBlock(part)), items };
}

/** Whether the time of the part stands in the line of its speaker. */
export function isTimed({ plain, live }: Part): boolean {
  return plain?.by !== undefined && MINUTE.test(live?.items['time'] ?? '');
}

/** A line with the time behind its speaker. */
export function timedContent({ framing }: Part, { content, by = '' }: Line, time: string): string {
  if (time === '') return content;
  if (framing) return plainHead(by, time) + content.slice(plainHead(by).length);
  const end = 1 + by.length;
  return `${content.slice(0, end)} ${time}${content.slice(end)}`;
}
