import type { PromptMessage } from '../../../../src/events/index.ts';

/** Lines of a message that one event stands behind; null where that is Troupe's own framing, or several. */
export interface Segment {
  seq: number | null;
  lines: string[];
}

const OPENS = /^<(?:msg|handoff)-[0-9a-f]+>$/;
const CLOSES = /^<\/(?:msg|handoff)-[0-9a-f]+>$/;
/** A line that nobody said: it tells who speaks, or marks where somebody's words begin and end. */
export const FENCE = /^<\/?(?:msg|missed|handoff|reminder|summary|transcript)-[0-9a-f]+>$/;
export const HEADER = /^(?:\d{4}-\d\d-\d\dT\d\d:\d\dZ )?\[[^\]\n]{1,200}\]/;

/** Who said which lines: a block of what was missed has a fence for each of its events, in their order. */
export function segmentsOf({ content, seqs }: Pick<PromptMessage, 'content' | 'seqs'>): Segment[] {
  const lines = content.split('\n');
  if (seqs.length < 2) return [{ seq: seqs[0] ?? null, lines }];
  const opens = lines.flatMap((line, index) => (OPENS.test(line) ? [index] : []));
  if (opens.length !== seqs.length) return [{ seq: null, lines }];
  const segments: Segment[] = [];
  let from = 0;
  for (const [index, open] of opens.entries()) {
    const begins = HEADER.test(lines[open - 1] ?? '') ? open - 1 : open;
    const ends = lines.findIndex((line, at) => at > open && CLOSES.test(line));
    if (begins > from) segments.push({ seq: null, lines: lines.slice(from, begins) });
    from = ends === -1 ? lines.length : ends + 1;
    segments.push({ seq: seqs[index] ?? null, lines: lines.slice(begins, from) });
  }
  if (from < lines.length) segments.push({ seq: null, lines: lines.slice(from) });
  return segments;
}
