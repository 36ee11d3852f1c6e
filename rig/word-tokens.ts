/** Replaces the vocabulary of the tokenizer, which takes 160 ms to load; see `bundle-process.ts`. */
export function countTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** There is no cache. */
export function setMergeCacheSize(_size: number): void {}
