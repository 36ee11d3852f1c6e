import type { Postings } from './ranking.ts';

/** The events with each word, in memory: numbers count from `base`. Grows at its end. */
export class WordPostings {
  readonly base: number;
  readonly #words = new Map<number, { docs: number[]; counts: number[] }>();

  constructor(base = 0) {
    this.base = base;
  }

  /** Events come by ascending number. */
  add(number: number, words: ReadonlyMap<number, number>): void {
    for (const [word, count] of words) {
      const known = this.#words.get(word);
      if (!known) this.#words.set(word, { docs: [number - this.base], counts: [count] });
      else {
        known.docs.push(number - this.base);
        known.counts.push(count);
      }
    }
  }

  of(word: number): Postings | null {
    const known = this.#words.get(word);
    return known ? { base: this.base, ...known } : null;
  }

  entries(): Iterable<[word: number, held: { docs: readonly number[]; counts: readonly number[] }]> {
    return this.#words;
  }
}
