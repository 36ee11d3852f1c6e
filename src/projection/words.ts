import { MAX_SUMMARY } from './model.ts';

/** How much of a text is looked at for a line of it: what is only blanks up to there is not worth more. */
const LOOK_AHEAD = 4;

/** The beginning of a text as one line. */
export function oneLine(text: string, length: number = MAX_SUMMARY): string {
  const isLong = text.length > length * LOOK_AHEAD;
  const head = isLong ? text.slice(0, length * LOOK_AHEAD) : text;
  const line = head.replace(/\s+/g, ' ').trim();
  if (line.length <= length) return isLong ? `${line.slice(0, length - 1).toWellFormed()}…` : line;
  return `${line.slice(0, length - 1).toWellFormed()}…`;
}

/** 1, 2, 3, 7 as `1–3, 7`. */
export function ranges(seqs: readonly number[]): string {
  const parts: { from: number; to: number }[] = [];
  for (const seq of seqs) {
    const last = parts.at(-1);
    if (last && seq === last.to + 1) last.to = seq;
    else parts.push({ from: seq, to: seq });
  }
  return parts.map(({ from, to }) => (from === to ? `${from}` : `${from}–${to}`)).join(', ');
}
