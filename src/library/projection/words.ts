import type { ToolProgress } from '../../events/index.ts';
import { MAX_SUMMARY } from './model.ts';

/** The beginning of a text as one line. */
export function oneLine(text: string, length: number = MAX_SUMMARY): string {
  const head = text.slice(0, length * LOOK_AHEAD);
  const line = head.replace(/\s+/g, ' ').trim();
  if (line.length <= length && head.length === text.length) return line;
  return `${line.slice(0, length - 1).toWellFormed()}…`;
}

/** Multiple of the line length that is read, so that a very long text costs little. */
const LOOK_AHEAD = 4;

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

/** Such as `3 of 8, copying`. */
export function progressInWords({ text, done, total }: ToolProgress): string {
  const count = done === undefined ? '' : total === undefined ? `${done}` : `${done} of ${total}`;
  return [count, text ?? ''].filter((part) => part !== '').join(', ');
}
