export type Random = () => number;

/** Mulberry32: returns numbers 0 <= n < 1, the same sequence for the same seed. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** FNV-1a. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** The seed of a suite: `TROUPE_SEED`, or a new one. Print it. */
export function suiteSeed(): number {
  const given = process.env['TROUPE_SEED'];
  return given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
}
