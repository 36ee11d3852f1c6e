import { visibleText } from '../src/context/text/event-text.ts';
import type { Event } from '../src/events/index.ts';

/** Textbook BM25 for comparison: a document is an event with `reach` neighbours on either side. */
export function plainBm25(log: readonly Event[], reach: number, k1 = 1.5, b = 0.75) {
  const texts = log.map((event) => visibleText(event) ?? '');
  const docs = texts.map((_, at) =>
    countsOf(texts.slice(Math.max(0, at - reach), at + reach + 1).join('\n')),
  );
  const lengths = docs.map((doc) => [...doc.values()].reduce((sum, count) => sum + count, 0));
  const meanLength = lengths.reduce((sum, length) => sum + length, 0) / docs.length;
  const holders = new Map<string, number>();
  for (const doc of docs) for (const word of doc.keys()) holders.set(word, (holders.get(word) ?? 0) + 1);

  function scoreOf(words: Iterable<string>, at: number): number {
    let score = 0;
    for (const word of words) {
      const count = docs[at]?.get(word) ?? 0;
      const held = holders.get(word) ?? 0;
      const rarity = Math.log(1 + (docs.length - held + 0.5) / (held + 0.5));
      const length = (lengths[at] ?? 0) / meanLength;
      score += (rarity * count * (k1 + 1)) / (count + k1 * (1 - b + b * length));
    }
    return score;
  }

  return (query: string, limit: number): number[] => {
    const words = [...countsOf(query).keys()];
    return log
      .map(({ seq }, at) => ({ seq, score: scoreOf(words, at) }))
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score || one.seq - other.seq)
      .slice(0, limit)
      .map(({ seq }) => seq);
  };
}

function countsOf(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}
