/** A JSON object with unknown, untrusted fields. */
export type JsonObject = Record<string, unknown>;

/** Whether a parsed value is an object with fields. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A text that says something; null for any other value. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** A text, or '': any other value may throw when it becomes one. */
export function nameOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A parsed value as JSON text. `JSON.parse` is iterative and `stringify` recursive, so deep nesting overflows only here. */
export function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'undefined';
  } catch (thrown) {
    if (thrown instanceof RangeError) return '"[nested too deeply]"';
    throw thrown;
  }
}

/** A smaller number is in seconds. As milliseconds this is the year 1973, as seconds the year 5138. */
const SECONDS_BELOW = 100_000_000_000;

/** Ms since the epoch from a number or an ISO text; null if an event cannot have this time. */
export function timeOf(value: unknown): number | null {
  if (typeof value === 'string') return validTime(Date.parse(value));
  if (typeof value !== 'number') return null;
  return validTime(value < SECONDS_BELOW ? value * 1000 : value);
}

/** Whole ms since the epoch; null if an event cannot have this time. */
export function validTime(ms: number): number | null {
  const whole = Math.trunc(ms);
  return Number.isSafeInteger(whole) && whole >= 0 ? whole : null;
}
