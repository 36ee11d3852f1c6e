import { exactInteger } from '../events/index.ts';

/**
 * What a tool has returned that is no JSON, as JSON: the tool ran, so its result is read as far as it can be.
 *  O1  What cannot be read is named in brackets in its place, and `isWhole` is false then.
 *  O2  Bounded in levels, values and characters, whatever the value is. Nothing of it is called or consumed but its
 *      getters, `toJSON` and `toString`; what these throw is named too.
 */
export function readOddResult(
  returned: unknown,
  change: (text: string) => string,
): { json: string; isWhole: boolean } {
  const reading: Reading = {
    change,
    values: MAX_VALUES,
    characters: MAX_CHARACTERS,
    above: [],
    isWhole: true,
  };
  const value = read(returned, reading);
  return { json: JSON.stringify(value) ?? 'null', isWhole: reading.isWhole };
}

const MAX_LEVELS = 64;
const MAX_VALUES = 50_000;
const MAX_CHARACTERS = 4_194_304;
const NAME_CHARACTERS = 200;

interface Reading {
  readonly change: (text: string) => string;
  /** How much may still be read. */
  values: number;
  characters: number;
  /** The objects that the present one is in. */
  readonly above: object[];
  isWhole: boolean;
}

function named(reading: Reading, what: string): string {
  reading.isWhole = false;
  return `[${reading.change(what).slice(0, NAME_CHARACTERS)}]`;
}

function read(value: unknown, reading: Reading): unknown {
  reading.values -= 1;
  if (reading.values < 0) return named(reading, 'cut: the result has too many values');
  switch (typeof value) {
    case 'string':
      return readText(value, reading);
    case 'bigint':
      return exactInteger(value);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'symbol':
    case 'function':
      return named(reading, `a ${typeof value}`);
    case 'object':
      return value === null ? null : readInside(value, reading);
    case 'boolean':
    case 'undefined':
      return value;
  }
}

function readText(text: string, reading: Reading): string {
  const whole = reading.change(text);
  const shown = whole.slice(0, Math.max(0, reading.characters));
  reading.characters -= shown.length;
  return shown.length === whole.length
    ? shown
    : shown + named(reading, `cut: ${whole.length - shown.length} more characters`);
}

function readInside(value: object, reading: Reading): unknown {
  const { above } = reading;
  if (above.includes(value)) return named(reading, 'the object that this is in');
  if (above.length >= MAX_LEVELS) return named(reading, `cut: more than ${MAX_LEVELS} levels`);
  above.push(value);
  try {
    return readObject(value, reading);
  } catch (thrown) {
    return named(reading, `it cannot be read: ${thrown instanceof Error ? thrown.message : 'it threw'}`);
  } finally {
    above.pop();
  }
}

function readObject(value: object, reading: Reading): unknown {
  if (Array.isArray(value)) return readList(value, reading);
  if (value instanceof Map) return readMap(value, reading);
  if (value instanceof Set) return readList([...firstOf(value, reading)], reading);
  if (value instanceof Error) return readError(value, reading);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return readBytes(value, reading);
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === 'function') return read((toJSON as () => unknown).call(value), reading);
  const keys = Object.keys(value).slice(0, reading.values + 1);
  if (keys.length > 0 && !isStream(value)) return readFields(value, keys, reading);
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null ? {} : readNamed(value, reading);
}

function readFields(value: object, keys: readonly string[], reading: Reading): Record<string, unknown> {
  const found: [string, unknown][] = [];
  for (const key of keys) {
    const isLast = reading.values <= 0;
    found.push([readText(key, reading), readField(value, key, reading)]);
    if (isLast) break;
  }
  return Object.fromEntries(found);
}

function readField(value: object, key: string, reading: Reading): unknown {
  try {
    return read((value as Record<string, unknown>)[key], reading);
  } catch (thrown) {
    return named(reading, `it cannot be read: ${thrown instanceof Error ? thrown.message : 'it threw'}`);
  }
}

function readList(list: readonly unknown[], reading: Reading): unknown[] {
  const items: unknown[] = [];
  for (const item of list) {
    const isLast = reading.values <= 0;
    items.push(read(item, reading));
    if (isLast) break;
  }
  return items;
}

function* firstOf<T>(values: Iterable<T>, { values: most }: Reading): Generator<T> {
  let left = most + 1;
  for (const value of values) {
    if (left <= 0) return;
    left -= 1;
    yield value;
  }
}

/** An object if all keys are texts, otherwise a list of pairs. */
function readMap(map: ReadonlyMap<unknown, unknown>, reading: Reading): unknown {
  const entries = [...firstOf(map, reading)];
  if (!entries.every(([key]) => typeof key === 'string')) return readList(entries, reading);
  const byKey = Object.fromEntries(entries) as Record<string, unknown>;
  return readFields(byKey, Object.keys(byKey), reading);
}

function readError(error: Error, reading: Reading): unknown {
  const { name, message, cause } = error;
  const fields = Object.fromEntries(Object.entries(error).filter(([key]) => key !== 'stack'));
  const all = { name, message, ...fields, ...(cause !== undefined && { cause }) };
  return readFields(all, Object.keys(all), reading);
}

/** Bytes that are text are read as such. */
function readBytes(value: ArrayBufferView | ArrayBuffer, reading: Reading): string {
  const { byteLength } = value;
  if (byteLength <= reading.characters && (value instanceof Uint8Array || value instanceof ArrayBuffer)) {
    try {
      const text = new TextDecoder('utf-8', { fatal: true }).decode(value);
      // Bytes that happen to be UTF-8.
      if (!text.includes('\0')) return readText(text, reading);
    } catch {
      // They are no text.
    }
  }
  return named(reading, `${value.constructor.name} of ${byteLength} bytes`);
}

/** Reading a stream would take from it, and may never end. */
function isStream(value: object): boolean {
  return Symbol.asyncIterator in value || Symbol.iterator in value || 'pipe' in value || 'getReader' in value;
}

function readNamed(value: object, reading: Reading): string {
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
  const words =
    value.toString === Object.prototype.toString ? '' : (value as { toString(): string }).toString();
  if (words !== '' && words !== `[object ${tag}]`) return readText(words, reading);
  const name = tag === 'Object' ? value.constructor?.name || tag : tag;
  return named(reading, `${name}: nothing in it can be read`);
}
