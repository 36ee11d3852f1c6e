import type { PromptMessage } from '../../../../src/events/index.ts';

/** Consecutive lines of a message that come from one event. Null for Troupe's own framing, or for several events. */
export interface Segment {
  seq: number | null;
  lines: string[];
}

/** A line without an author: it marks where somebody's text begins or ends. */
export const FENCE =
  /^(?:<\/?(?:msg|missed|handoff|reminder|summary|transcript)-[0-9a-f]+>|\[(?:new|reminder|[\d :-]+(?: \([^()\n]*\))?) #\d{6}\]|\[[\d :-]+\]|#(?:\d{6})?)$/;
export const HEADER = /^(?:\d{4}-\d\d-\d\dT\d\d:\d\dZ )?\[[^\]\n]{0,200}\]/;

/** The mark `[name #123456]`, whose text ends at the line `#123456`. */
const MARK = /^\[([^\]\n]*) #(\d{6})\]$/;

/** The end of a block. */
const END = '#';

/** The lines at which a message of several events is split. Within a block, every line that is not indented begins an event. */
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

/** Null if the lines do not match the events. */
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

/** Attributes lines to events. A block of missed messages has its events in their order. */
export function segmentsOf({ content, seqs }: Pick<PromptMessage, 'content' | 'seqs'>): Segment[] {
  const lines = content.split('\n');
  if (seqs.length < 2) return [{ seq: seqs[0] ?? null, lines }];
  const marked = lines.some((line) => MARK.test(line)) ? markedSegments(lines, seqs) : null;
  return marked ?? [{ seq: null, lines }];
}
