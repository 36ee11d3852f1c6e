/** In the place of a tokenizer's vocabulary, whose loading takes 160 ms; see `bundle-process.ts`. */
export function countTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** It remembers nothing. */
export function setMergeCacheSize(_size: number): void {}
