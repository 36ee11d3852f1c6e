import type { LiveItems } from '../../events/index.ts';
import { indented } from '../mark.ts';
import type { Line, Part } from '../slot.ts';

/** From rendering 3 on, a time stands behind the name of a speaker, and only where the minute is not the one told last. */

const MINUTE = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)Z$/;
/** A live item may add the time of a person. */
const WITH_LOCAL = /^(\S+)( \(.*\))$/;

/** `10:12` on the day told last, else `2026-11-21 10:12`; '' for the minute told last. */
function timeShown(at: string, told: string | null): string {
  const [, utc, local] = WITH_LOCAL.exec(at) ?? [];
  if (utc !== undefined && local !== undefined) return `${timeShown(utc, told) || clockOf(utc)}${local}`;
  if (at === told) return '';
  const [, day] = MINUTE.exec(at) ?? [];
  if (day === undefined || told?.startsWith(day)) return clockOf(at);
  return `${day} ${clockOf(at)}`;
}

function clockOf(at: string): string {
  return MINUTE.exec(at)?.[2] ?? at;
}

/** The missed lines of a block. Only the first of a speaker's lines in a row has the name. */
export function* blockLines({ missed, told = null }: Part): Generator<string> {
  let before: Pick<Line, 'by'> & { at: string | null } = { at: told };
  for (const { content, from, to, by, at } of missed) {
    if (by === undefined || at === undefined) {
      before = { at: before.at };
      yield content;
      continue;
    }
    const head = [by === before.by ? '' : by, timeShown(at, before.at)].filter(Boolean).join(' ');
    before = { by, at };
    yield `[${head}] ${indented(content.slice(from, to))}`;
  }
}

/** Characters that a block adds to its texts by indenting them. A space before a word takes no token of its own. */
export function indentsIn({ missed, told }: Part): number {
  if (told === undefined) return 0;
  const lines = missed.filter(({ by }) => by !== undefined);
  return lines.reduce(
    (sum, { content, from, to }) => sum + indented(content.slice(from, to)).length - to + from,
    0,
  );
}

/** The last minute told when a part has been read; null if none was. */
export function toldBy({ missed, live, told = null }: Part): string | null {
  const { time } = live?.items ?? {};
  return time?.split(' ')[0] ?? missed.findLast(({ at }) => at !== undefined)?.at ?? told;
}

/** The time of a part's live block as shown, null if it tells none, and the other items. */
export function timeOf({ live, missed, told = null }: Part): { time: string | null; items: LiveItems } {
  const { time, ...items } = live?.items ?? {};
  if (time === undefined) return { time: null, items };
  const before = toldBy({ plain: null, handoffs: [], missed, live: null, told });
  return { time: timeShown(time, before), items };
}

/** Whether the time of the part stands in the line of its speaker. */
export function isTimed({ plain, live }: Part): boolean {
  return plain?.by !== undefined && MINUTE.test(live?.items['time'] ?? '');
}

/** A line with the time behind its speaker. */
export function timedContent({ content, by = '' }: Line, time: string): string {
  const end = 1 + by.length;
  return time === '' ? content : `${content.slice(0, end)} ${time}${content.slice(end)}`;
}
