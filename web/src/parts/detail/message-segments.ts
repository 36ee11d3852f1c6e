import type { PromptMessage } from '../../../../src/events/index.ts';

/** Consecutive lines of a message that come from one event; null for Troupe's own framing or several events. */
export interface Segment {
  seq: number | null;
  lines: string[];
}

/** A line with no author: it marks where someone's words begin and end. */
export const FENCE =
  /^(?:<\/?(?:msg|missed|handoff|reminder|summary|transcript)-[0-9a-f]+>|\[(?:new|reminder|[\d :-]+(?: \([^()\n]*\))?) #\d{6}\]|\[[\d :-]+\]|#(?:\d{6})?)$/;
export const HEADER = /^(?:\d{4}-\d\d-\d\dT\d\d:\d\dZ )?\[[^\]\n]{0,200}\]/;

/** `[name #123456]`: the words up to the line `#123456`. */
const MARK = /^\[([^\]\n]*) #(\d{6})\]$/;

/** The end of a block. */
const END = '#';

/** The lines of a message of several events: in a block, every line at the margin begins an event. */
function startsOf(lines: readonly string[]): number[] {
  const starts: number[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    const [, name, key] = MARK.exec(line) ?? [];
    if (name === 'new') continue;
    if (line === END) break;
    if (line.startsWith('[') || line.startsWith('-> ')) starts.push(at);
    if (key === undefined) continue;
    const end = lines.indexOf(`#${key}`, at);
    if (end !== -1) at = end;
  }
  return starts;
}

/** Null if the lines do not fit the events. */
function markedSegments(lines: readonly string[], seqs: readonly number[]): Segment[] | null {
  const starts = startsOf(lines);
  if (starts.length !== seqs.length) return null;
  const last = lines.indexOf(END, starts.at(-1));
  const head = starts[0] === 0 ? [] : [{ seq: null, lines: lines.slice(0, starts[0]) }];
  const said = starts.map((start, index) => {
    const next = starts[index + 1];
    return { seq: seqs[index] ?? null, lines: lines.slice(start, next ?? last) };
  });
  return [...head, ...said, { seq: null, lines: lines.slice(last) }];
}

/** Attributes lines to events. A block of missed messages has them in their order. */
export function segmentsOf({ content, seqs }: Pick<PromptMessage, 'content' | 'seqs'>): Segment[] {
  const lines = content.split('\n');
  if (seqs.length < 2) return [{ seq: seqs[0] ?? null, lines }];
  const marked = lines.some((line) => MARK.test(line)) ? markedSegments(lines, seqs) : null;
  return marked ?? [{ seq: null, lines }];
}
