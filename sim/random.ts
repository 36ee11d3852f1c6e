/** 0 <= n < 1. */
export type Random = () => number;

/** Mulberry32 over a hash of seed and stream: streams of one seed are independent. */
export function randomOf(seed: number, stream: string): Random {
  let state = hashText(stream, Math.imul(seed ^ (seed >>> 16), 0x45d9f3b) >>> 0);
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** FNV-1a, continued from `hash`. */
export function hashText(text: string, hash = 0x811c9dc5): number {
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

export function below(random: Random, limit: number): number {
  return Math.floor(random() * limit);
}

export function between(random: Random, low: number, high: number): number {
  return low + random() * (high - low);
}

export function pick<T>(random: Random, items: readonly T[]): T {
  return items[below(random, items.length)] as T;
}
