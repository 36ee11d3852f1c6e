/**
 * Plain data as text, and back: objects, arrays, maps, sets, and every value that JSON lacks. No schema, so a fold that
 * gains a field needs no change here.
 *  1. `unpack(pack(value))` is deeply equal to `value`, also in `__proto__` keys, lone surrogates and `undefined`.
 *  2. An object that occurs several times is written once and is one object afterwards; so is a long text. A message
 *     and the parts it was rendered from share their text.
 *  3. Anything else (an instance of a class, a function, a symbol, a bigint, a cycle) throws a TypeError.
 */
export function pack(value: unknown): string {
  const shared = findShared(value);
  const places = new Map<unknown, number>();
  const table: unknown[] = [];

  function encode(each: unknown): unknown {
    if (!shared.has(each)) return encodeOnce(each);
    const known = places.get(each);
    if (known !== undefined) return `${REFERENCE}${known}`;
    // Behind everything it refers to.
    const body = encodeOnce(each);
    places.set(each, table.push(body) - 1);
    return `${REFERENCE}${table.length - 1}`;
  }

  function encodeOnce(each: unknown): unknown {
    if (typeof each === 'string') return each.startsWith(MARK) ? MARK + each : each;
    if (typeof each === 'number') return isJsonNumber(each) ? each : `${NUMBER}${numberName(each)}`;
    if (each === undefined) return UNDEFINED;
    if (typeof each !== 'object' || each === null) return each;
    if (Array.isArray(each)) return each.map(encode);
    if (each instanceof Map) return { [MAP]: [...each].flat(1).map(encode) };
    if (each instanceof Set) return { [SET]: [...each].map(encode) };
    const entries = Object.entries(each);
    if (entries.some(([key]) => UNSAFE_KEY.test(key))) return { [ENTRIES]: entries.flat(1).map(encode) };
    // Without a prototype, `__proto__` is an ordinary key.
    const record = Object.create(null) as Record<string, unknown>;
    for (const [key, part] of entries) record[key] = encode(part);
    return record;
  }

  const root = encode(value);
  return JSON.stringify([table, root]);
}

/** Throws for a text that `pack` did not make. */
export function unpack(text: string): unknown {
  const [table, root] = JSON.parse(text) as [unknown[], unknown];
  for (let at = 0; at < table.length; at += 1) table[at] = decode(table[at], table);
  return decode(root, table);
}

const MARK = '~';
const REFERENCE = '~r';
const NUMBER = '~n';
const UNDEFINED = '~u';
const MAP = '~m';
const SET = '~s';
const ENTRIES = '~o';
/** Marked, or escaped by JSON: V8 13.6 (Node 24) sometimes reads another key where `JSON.parse` meets an escape. */
const UNSAFE_KEY = /^~|["\\]|\p{Cc}|\p{Surrogate}/u;
/** Shorter texts cost less than a reference to them. */
const LONG_TEXT = 24;

/** The objects and long texts that occur more than once. Throws for what cannot be packed. */
function findShared(root: unknown): ReadonlySet<unknown> {
  const seen = new Set<unknown>();
  const shared = new Set<unknown>();
  const above = new Set<unknown>();

  function visit(value: unknown): void {
    if (typeof value === 'string') {
      if (value.length >= LONG_TEXT) isKnown(value);
      return;
    }
    if (typeof value !== 'object' || value === null) return refuseUnlessPlain(value);
    if (above.has(value)) throw new TypeError('a cycle cannot be packed');
    if (isKnown(value)) return;
    above.add(value);
    if (!isCollection(value)) refuseUnlessPlain(value);
    for (const part of partsOf(value)) visit(part);
    above.delete(value);
  }

  function isKnown(value: unknown): boolean {
    if (!seen.has(value)) {
      seen.add(value);
      return false;
    }
    shared.add(value);
    return true;
  }

  visit(root);
  return shared;
}

function isCollection(value: object): boolean {
  return Array.isArray(value) || value instanceof Map || value instanceof Set;
}

function partsOf(value: object): Iterable<unknown> {
  if (Array.isArray(value) || value instanceof Set) return value;
  return value instanceof Map ? [...value].flat(1) : Object.values(value);
}

function refuseUnlessPlain(value: unknown): void {
  if (value === null || value === undefined || typeof value === 'number' || typeof value === 'boolean')
    return;
  if (typeof value === 'object') {
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) return;
  }
  throw new TypeError(
    `${typeof value === 'object' ? value.constructor?.name : typeof value} is no plain data`,
  );
}

function isJsonNumber(value: number): boolean {
  return Number.isFinite(value) && !Object.is(value, -0);
}

function numberName(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

function decode(value: unknown, table: readonly unknown[]): unknown {
  if (typeof value === 'string') return value.startsWith(MARK) ? decodeText(value, table) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) {
      const part: unknown = value[at];
      if (typeof part === 'string' || typeof part === 'object') value[at] = decode(part, table);
    }
    return value;
  }
  const record = value as Record<string, unknown>;
  for (const key in record) {
    const part = record[key];
    if (key.startsWith(MARK)) return decodeMarked(key, decode(part, table) as unknown[]);
    if (typeof part !== 'string' && typeof part !== 'object') continue;
    const decoded = decode(part, table);
    if (decoded !== part) record[key] = decoded;
  }
  return record;
}

function decodeText(text: string, table: readonly unknown[]): unknown {
  if (text.startsWith(MARK, 1)) return text.slice(1);
  if (text === UNDEFINED) return undefined;
  if (text.startsWith(NUMBER)) return Number(text.slice(NUMBER.length));
  return table[Number(text.slice(REFERENCE.length))];
}

function decodeMarked(mark: string, parts: readonly unknown[]): unknown {
  if (mark === SET) return new Set(parts);
  const entries: [unknown, unknown][] = [];
  for (let at = 0; at < parts.length; at += 2) entries.push([parts[at], parts[at + 1]]);
  return mark === MAP ? new Map(entries) : Object.fromEntries(entries as [string, unknown][]);
}
