/** A JSON object with unknown, untrusted fields. */
export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

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

/** A foreign value, short enough for an example. */
export function excerpt(value: unknown): string {
  return (typeof value === 'string' ? value : jsonText(value)).slice(0, 80);
}

/**
 * The messages of a conversation: a bare list, `{messages}`, `{traj}`, a state of LangGraph, or an answer of the Responses API with
 * its input. Null for any other value.
 */
export function messagesOf(value: unknown): unknown[] | null {
  if (Array.isArray(value)) return value.some(isObject) ? value : null;
  if (!isObject(value)) return null;
  for (const list of [value['traj'], value['messages'], value['contents']])
    if (Array.isArray(list)) return list;
  const state = value['values'] ?? value['kwargs'];
  if (isObject(state) && Array.isArray(state['messages'])) return state['messages'];
  const { input, output } = value;
  if (!Array.isArray(output) && !Array.isArray(input)) return null;
  if ('role' in value || typeof value['call_id'] === 'string') return null;
  const asked = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  return [asked, output].flatMap((list) => (Array.isArray(list) ? list : []));
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
