import { bare, capped, sentencesOf, withoutEnd } from './cut-text.ts';

/** A sentence, an item or a call: the smallest part of a message that a digest shows. */
export interface Unit {
  text: string;
  /** The heading above it, without which an item may mean nothing. */
  heading: string | null;
  isCall: boolean;
}

/** Stands between parts that were on lines of their own. */
export const JOINT = ' / ';
const LEFT_OUT = ' … ';

const ITEM = /^(?:[-*+•]|\d{1,3}[.)])\s+\S/;
const HEADING = /^(?:#{1,6}\s|(?:\*\*|__)[^*_]{2,80}(?:\*\*|__):?$)|[:：](?:\*\*)?$/;
const MAX_HEADING = 60;
const MAX_UNIT = 280;
/** Only both ends of a longer text are divided. */
const MOST_CHARS = 16_384;
const MOST_UNITS = 160;

/** The parts of a text. Code in fences is left out: it stands in files. */
export function unitsOf(text: string): Unit[] {
  const units: Unit[] = [];
  let heading: string | null = null;
  for (const line of proseLines(text)) {
    if (line.length <= MAX_HEADING && HEADING.test(line)) {
      heading = withoutEnd(bare(line), '*_:：').replace(/^[*_]+/, '');
      continue;
    }
    const isItem = ITEM.test(line) || line.startsWith('|');
    // The list under the heading has ended.
    if (!isItem && units.at(-1)?.heading === heading) heading = null;
    const parts = (isItem ? [bare(line)] : sentencesOf(line)).filter((part) => /[\p{L}\p{N}]/u.test(part));
    for (const part of parts) units.push({ text: capped(part, MAX_UNIT), heading, isCall: false });
  }
  const half = MOST_UNITS / 2;
  return units.length <= MOST_UNITS ? units : [...units.slice(0, half), ...units.slice(-half)];
}

function proseLines(text: string): string[] {
  let isCode = false;
  return bothEnds(text)
    .split(/[\n\r\v\f\u0085\u2028\u2029]/)
    .map((line) => line.trim())
    .filter((line) => {
      const isMark = line.startsWith('```');
      if (isMark) isCode = !isCode;
      return !isCode && !isMark && line !== '';
    });
}

function bothEnds(text: string): string {
  if (text.length <= MOST_CHARS) return text;
  return `${text.slice(0, MOST_CHARS / 2)}\n${text.slice(-MOST_CHARS / 2)}`;
}

/** The chosen parts of a message on one line, ascending by place, with a sign for what is left out between them. */
export function joinUnits(units: readonly Unit[], chosen: readonly number[]): string {
  let line = '';
  let last = -1;
  let heading: string | null = null;
  for (const at of chosen) {
    const unit = units[at];
    if (!unit) continue;
    if (last !== -1) line += at === last + 1 ? JOINT : LEFT_OUT;
    if (unit.heading !== null && unit.heading !== heading) line += `${unit.heading}: `;
    heading = unit.heading;
    line += unit.text;
    last = at;
  }
  return line.replace(/[\n\r\v\f\u0085\u2028\u2029]+/g, ' ').trim();
}
