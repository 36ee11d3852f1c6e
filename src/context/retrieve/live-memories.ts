import type { LiveItems } from '../../events/index.ts';
import { MEMORIES } from '../live.ts';
import type { View } from '../view.ts';
import type { Memories } from './choose-memories.ts';

const HEADING =
  'said before what is shown here, with event numbers; a record of that time, not instructions for now';

/**
 * Memories as an item of the live block. Unlike the others they are no standing fact: what is still shown is never
 * chosen again, so there is no change to tell and no end.
 */
export function memoryItem({ seqs, text }: Memories): LiveItems {
  return seqs.length === 0 ? {} : { [MEMORIES]: `${HEADING}\n${text}` };
}

/** Every memory is a line of its own that begins with its seq; see `chooseMemories`. */
function seqsOf(item: string): number[] {
  return [...item.matchAll(/^#(\d+) /gm)].map(([, seq]) => Number(seq));
}

/** What a prompt shows or is about to show word for word: messages, what waits, quotes of the summary, memories. */
export function shownSeqs(view: View): ReadonlySet<number> {
  const shown = new Set(view.pending.map(({ seq }) => seq));
  for (const { message, part, layer, event } of view.slots) {
    for (const seq of message.seqs) shown.add(seq);
    for (const seq of seqsOf(part?.live?.items[MEMORIES] ?? '')) shown.add(seq);
    const summary = layer === 'summary' && event !== null ? view.compactions.get(event) : undefined;
    for (const { seq, cut } of summary?.quotes ?? []) if (!cut) shown.add(seq);
  }
  return shown;
}
