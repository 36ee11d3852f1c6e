/** A JSON object with unknown, untrusted fields. */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
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

/** The messages of an OpenAI-style conversation: `{traj}`, `{messages}` or a bare list. Null for any other value. */
export function messagesOf(value: unknown): unknown[] | null {
  if (Array.isArray(value)) return value.some(hasRole) ? value : null;
  if (!isObject(value)) return null;
  if (Array.isArray(value['traj'])) return value['traj'];
  if (Array.isArray(value['messages'])) return value['messages'];
  return null;
}

function hasRole(value: unknown): boolean {
  return isObject(value) && typeof value['role'] === 'string';
}

/** The `session_N` lists of a LoCoMo sample in order, each with its unparsed time. */
export function sessionsOf(value: JsonObject): { time: unknown; turns: unknown[] }[] {
  const sample = isObject(value['conversation']) ? value['conversation'] : value;
  const found: { number: number; time: unknown; turns: unknown[] }[] = [];
  for (const [key, turns] of Object.entries(sample)) {
    const number = /^session_(\d+)$/.exec(key)?.[1];
    if (number === undefined || !Array.isArray(turns)) continue;
    found.push({ number: Number(number), time: sample[`${key}_date_time`], turns });
  }
  return found.sort((a, b) => a.number - b.number);
}

/** A smaller number is in seconds. As milliseconds this is the year 1973, as seconds the year 5138. */
const SECONDS_BELOW = 100_000_000_000;

/** Ms since the epoch from a number or an ISO text; null if an event cannot have this time. */
export function timeOf(value: unknown): number | null {
  if (typeof value === 'string') return validTime(Date.parse(value));
  if (typeof value !== 'number') return null;
  return validTime(value < SECONDS_BELOW ? value * 1000 : value);
}

export function validTime(ms: number): number | null {
  const whole = Math.trunc(ms);
  return Number.isSafeInteger(whole) && whole >= 0 ? whole : null;
}
