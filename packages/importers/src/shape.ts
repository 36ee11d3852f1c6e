import { isObject, type JsonObject, jsonText } from './troupe.ts';

export { isObject, type JsonObject, jsonText, nameOf, textOf, timeOf, validTime } from './troupe.ts';

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
