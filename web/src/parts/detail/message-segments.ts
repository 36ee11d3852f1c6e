import type { PromptMessage } from '../../../../src/events/index.ts';

/** Consecutive lines of a message that come from one event; null for Troupe's own framing or several events. */
export interface Segment {
  seq: number | null;
  lines: string[];
}

const OPENS = /^<(?:msg|handoff)-[0-9a-f]+>$/;
const CLOSES = /^<\/(?:msg|handoff)-[0-9a-f]+>$/;
/** A line with no author: it names the speaker, or marks where someone's words begin and end. */
export const FENCE = /^<\/?(?:msg|missed|handoff|reminder|summary|transcript)-[0-9a-f]+>$/;
export const HEADER = /^(?:\d{4}-\d\d-\d\dT\d\d:\d\dZ )?\[[^\]\n]{1,200}\]/;

/** Attributes lines to events. A block of missed messages has one fence per event, in their order. */
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
