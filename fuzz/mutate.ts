import { below, pick, type Random } from '../sim/random.ts';
import { KEYS, nastyText, nastyValue, nested } from './nasty.ts';

/**
 * A copy with one or a few places changed. The original stays unchanged; parts off the path to a change are shared.
 */
export function mutate(random: Random, value: unknown): unknown {
  let changed = value;
  const times = random() < 0.7 ? 1 : 1 + below(random, 4);
  for (let time = 0; time < times; time++) changed = mutateOnce(random, changed);
  return changed;
}

function mutateOnce(random: Random, value: unknown): unknown {
  if (Array.isArray(value) && value.length > 0 && random() < 0.7) {
    const at = below(random, value.length);
    return value.map((item: unknown, index) => (index === at ? mutateOnce(random, item) : item));
  }
  if (isRecord(value) && random() < 0.85) {
    const entries = Object.entries(value);
    if (entries.length > 0 && random() < 0.75) {
      const at = below(random, entries.length);
      return record(entries.map(([key, item], i) => [key, i === at ? mutateOnce(random, item) : item]));
    }
    return mutateKeys(random, entries);
  }
  return mutateHere(random, value);
}

function mutateKeys(random: Random, entries: [string, unknown][]): unknown {
  const roll = random();
  const at = below(random, Math.max(1, entries.length));
  if (roll < 0.3) return record(entries.filter((_, index) => index !== at));
  if (roll < 0.4) return record(entries.map(([key, item], i) => [i === at ? pick(random, KEYS) : key, item]));
  // Swaps two of its values.
  if (roll < 0.6) {
    const other = below(random, Math.max(1, entries.length));
    const values = entries.map(([, item]) => item);
    return record(
      entries.map(([key, item], i) => [key, i === at ? values[other] : i === other ? values[at] : item]),
    );
  }
  return record([...entries, [random() < 0.8 ? pick(random, KEYS) : nastyText(random), nastyValue(random)]]);
}

function mutateHere(random: Random, value: unknown): unknown {
  const roll = random();
  if (roll < 0.1) return [value];
  if (roll < 0.15) return { a: value };
  if (roll < 0.2) return nested(random, pick(random, [5, 64, 2_000]));
  if (Array.isArray(value)) {
    if (roll < 0.5) return [...(value as unknown[]), ...(value as unknown[]), nastyValue(random)];
    if (roll < 0.6) return manyOf(random, value as unknown[]);
  }
  if (typeof value === 'string' && roll < 0.7) return mutateText(random, value);
  if (typeof value === 'number' && roll < 0.4) return String(value);
  return nastyValue(random);
}

/**
 * Longer than a list may be. Large items are repeated no more than that, or a few changes would make an input of
 * megabytes.
 */
function manyOf(random: Random, [item = 'x']: readonly unknown[]): unknown[] {
  const lengths = typeof item === 'object' ? [17, 65] : [17, 65, 257, 3_000];
  return Array.from({ length: pick(random, lengths) }, () => item);
}

export function mutateText(random: Random, text: string): string {
  const at = below(random, text.length + 1);
  const end = Math.min(text.length, at + 1 + below(random, 12));
  const roll = random();
  if (roll < 0.3) return text.slice(0, at) + nastyText(random) + text.slice(at);
  if (roll < 0.5) return text.slice(0, at) + text.slice(end);
  if (roll < 0.6) return text.slice(0, at);
  if (roll < 0.75) return text.slice(0, end) + text.slice(at);
  if (roll < 0.85) return text + text;
  if (roll < 0.9) return text.toUpperCase();
  return text.repeat(1 + below(random, 40)).slice(0, 20_000);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Creates own keys, including `__proto__`. */
function record(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  return Object.fromEntries(entries);
}
