/** JSON with sorted keys. Built as text, so that `__proto__` is an ordinary key. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const record = value as Record<string, unknown>;
  let text = '';
  for (const key of Object.keys(record).sort()) {
    if (record[key] === undefined) continue;
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(record[key])}`;
  }
  return `{${text}}`;
}

/** An integer that a number cannot hold exactly, such as ids of X, Discord and databases. `JSON.stringify` writes its digits. */
export interface ExactInteger {
  readonly rawJSON: string;
}

/** In Node since 21, and not yet in the compiler's library. */
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON: (this: void, text: string) => ExactInteger;
  isRawJSON: (this: void, value: unknown) => value is ExactInteger;
};
type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;
const parseWith = JSON.parse as (text: string, reviver: Reviver) => unknown;

/** A text without 16 digits in a row has no such integer. */
const MANY_DIGITS = /\d{16}/;
const INTEGER = /^-?\d+$/;

/**
 * Parses JSON from outside that is passed on: arguments of calls and results of tools. `JSON.parse` silently rounds
 * integers beyond 2^53; here they keep all digits. Throws like `JSON.parse`.
 */
export function parseExact(text: string): unknown {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text);
  try {
    return parseWith(text, (_, value, { source }) =>
      typeof value === 'number' && source !== undefined && isRounded(value, source) ? rawJSON(source) : value,
    );
  } catch (thrown) {
    // A reviver is called recursively, so it overflows the stack where `JSON.parse` does not.
    if (thrown instanceof RangeError) return JSON.parse(text);
    throw thrown;
  }
}

/** The integer as JSON, with all its digits. */
export function exactInteger(value: bigint): ExactInteger {
  return rawJSON(String(value));
}

export function isExactInteger(value: unknown): value is ExactInteger {
  return isRawJSON(value);
}

/** The first integer in a parsed value that a number cannot hold exactly, with its place; null if there is none. */
export function findExactInteger(
  value: unknown,
  { text }: { text: string },
): { place: string; digits: string } | null {
  if (!MANY_DIGITS.test(text)) return null;
  const open: { place: string; value: unknown }[] = [{ place: '', value }];
  for (let next = open.pop(); next; next = open.pop()) {
    const { place, value: at } = next;
    if (isRawJSON(at)) return { place, digits: at.rawJSON };
    if (typeof at !== 'object' || at === null) continue;
    for (const [key, part] of Object.entries(at).toReversed())
      open.push({ place: place === '' ? key : `${place}.${key}`, value: part });
  }
  return null;
}

function isRounded(value: number, source: string): boolean {
  return !Number.isSafeInteger(value) && INTEGER.test(source) && isChanged(value, source);
}

/** Longest number whose digits are compared. Longer ones are beyond the range of numbers, so they count as changed. */
const MOST_COMPARED = 400;

function isChanged(value: number, source: string): boolean {
  return source.length > MOST_COMPARED || !Number.isFinite(value) || BigInt(source) !== BigInt(value);
}
