import type { Clock } from '../../../base/clock.ts';
import { slicesOf } from '../../../base/slices.ts';
import type { ConversationKey, Store } from '../../../store/store.ts';
import type { Checkpoints, Loaded, Place } from '../../log/read-log.ts';
import { hash } from 'node:crypto';

interface CheckpointDeps {
  store: Pick<Store, 'putDerived' | 'readDerived' | 'derivedKeys' | 'removeDerived' | 'markOf'>;
  clock: Pick<Clock, 'now' | 'monotonic' | 'sleep'>;
  /** What folds depend on besides the log and `FORMAT`: former ids of agents. A fold of another version is not used. */
  version: string;
  /** Minimum events between two checkpoints. Default: 64, because fewer are read in a few milliseconds. */
  least?: number;
  onWarning: (error: unknown, where: string) => void;
}

/** Checkpoints kept per subject: the newest, and another in case the newest cannot be used. */
const KEPT = 2;
const LEAST_EVENTS = 64;
/** Pause before writing, ms: longer than the rest of a turn on a fast machine. */
const BEHIND_MS = 250;
const MOST_WAITING = 64;

interface Waiting extends Place {
  log: ConversationKey;
  subject: string;
  parts: readonly unknown[];
}

/**
 * Stored folds of logs, so that a process that opens a long conversation reads only its end.
 *
 * Owns which folds are stored, for how long, and whether they may be used. Does not own the folds: `parts` are plain data.
 *  C1  A checkpoint is a cache. If it is missing, damaged, of another version or of another log, the caller reads from an older
 *      one or from the first event. The result of a fold never depends on it.
 *  C2  `parts` contain the events up to `seq` and nothing else: no draft, no running turn, no secret.
 *  C3  It is written after the work that made it: after a pause, one part at a time, when the event loop is idle. A failure
 *      causes a warning. If too many wait, one is dropped.
 *  C4  After each write a subject has at most `KEPT` checkpoints, the newest. All are removed with their conversation. Those
 *      written while it is deleted are found too, because the mark of their event no longer exists.
 *  C5  An erasure removes all checkpoints of its conversation. It first records its seq (`noteErased`), by which those written
 *      meanwhile are found too.
 *  C6  `load` returns nothing after `upTo`, because a resumed turn must not see events from after it was pinned.
 */
export function createCheckpoints(deps: CheckpointDeps): Checkpoints {
  const { store, least = LEAST_EVENTS, onWarning } = deps;

  /** Runs `work`. A failure becomes a warning, because a checkpoint is not worth an error. */
  async function guarded<T>(subject: string, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      onWarning(error, `checkpoint of ${subject}`);
      return null;
    }
  }

  return {
    least,
    load: (log, subject, { upTo = Infinity } = {}) =>
      guarded(subject, async () => {
        const keys = await store.derivedKeys(log, prefixOf(subject));
        for (const key of keys.toReversed()) {
          const seq = Number(key.slice(prefixOf(subject).length));
          const loaded = seq <= upTo ? await loadOne(deps, log, { subject, seq }) : null;
          if (loaded) return loaded;
        }
        return null;
      }),
    mark: (log, seq) =>
      guarded('a log', async () => {
        const mark = await store.markOf(log, seq);
        return mark === null ? null : { seq, mark };
      }),
    erase: (log, seq) => noteErased(deps, log, seq),
    ...createWriting(deps),
  };
}

async function loadOne(
  { store, clock, version }: CheckpointDeps,
  log: ConversationKey,
  { subject, seq }: { subject: string; seq: number },
): Promise<Loaded | null> {
  const key = keyOf(subject, seq);
  const [text = null] = await store.readDerived(log, [key]);
  if (text === null) return null;
  const found = readText(version, { log, subject, seq }, text);
  if (found.kind === 'other') return null;
  if (found.kind === 'read' && found.mark === (await store.markOf(log, seq))) {
    const parts = await unpackParts(clock, found.lines);
    if (parts) return { seq, parts };
  }
  await store.removeDerived(log, [key]);
  return null;
}

/** Parts unpacked in one slice, which takes a few milliseconds. */
const AT_ONCE = 5;

/** The parts; null if they are damaged. A correct hash proves nothing, because a writer can compute it. */
async function unpackParts(
  clock: CheckpointDeps['clock'],
  lines: readonly string[],
): Promise<unknown[] | null> {
  const parts: unknown[] = [];
  for (const line of lines) {
    if (parts.length > 0 && parts.length % AT_ONCE === 0) await slicesOf(clock).next();
    try {
      parts.push(unpack(line));
    } catch {
      return null;
    }
  }
  return parts;
}

function createWriting(deps: CheckpointDeps): Pick<Checkpoints, 'save' | 'flush'> {
  const { clock, onWarning } = deps;
  /** Waiting checkpoints by log and subject. A newer one replaces an older one. */
  const waiting = new Map<string, Waiting>();
  let writing: Promise<void> | null = null;
  let pause = new AbortController();

  async function writeAll(): Promise<void> {
    await clock.sleep(BEHIND_MS, pause.signal);
    for (const [key, each] of waiting) {
      waiting.delete(key);
      await write(deps, each).catch((error: unknown) => onWarning(error, `checkpoint of ${each.subject}`));
    }
    // Set before any wait, so that a checkpoint queued from now on begins another round.
    writing = null;
  }

  return {
    save(log, subject, place, parts) {
      const key = `${log.tenant}/${log.conversation}/${subject}`;
      if (!waiting.has(key) && waiting.size >= MOST_WAITING) return;
      waiting.set(key, { log, subject, ...place, parts });
      writing ??= writeAll();
    },
    async flush() {
      pause.abort();
      await writing;
      pause = new AbortController();
    },
  };
}

async function write(
  { store, clock, version }: CheckpointDeps,
  { log, subject, seq, mark, parts }: Waiting,
): Promise<void> {
  const lines: string[] = [];
  for (const part of parts) {
    await slicesOf(clock).next();
    lines.push(pack(part));
  }
  const key = keyOf(subject, seq);
  await store.putDerived(log, key, writeText(version, { log, subject, seq, mark }, lines), clock.now());
  const all = await store.derivedKeys(log, CHECKPOINTS);
  const others = all.filter((each) => each !== key && each.startsWith(prefixOf(subject)));
  const old = others.slice(0, 1 - KEPT);
  // While the checkpoint was written, its conversation may have been deleted or words of it erased.
  const isErased = all.some((each) => each > keyOf(ERASED, seq) && each.startsWith(prefixOf(ERASED)));
  const isGone = isErased || (await store.markOf(log, seq)) !== mark;
  if (isGone) old.push(key);
  if (old.length > 0) await store.removeDerived(log, old);
}

const ERASED = '~erased';

/** Records that words before `seq` were erased, so that no earlier fold is stored any more. Then removes the stored ones. */
async function noteErased(
  { store, clock }: CheckpointDeps,
  log: ConversationKey,
  seq: number,
): Promise<void> {
  const key = keyOf(ERASED, seq);
  await store.putDerived(log, key, '', clock.now());
  const others = (await store.derivedKeys(log, '')).filter((each) => each !== key);
  if (others.length > 0) await store.removeDerived(log, others);
}

/** Seqs in keys are padded to this many digits, so that keys sort by seq. */
const SEQ_DIGITS = 16;
const CHECKPOINTS = 'checkpoint/';

function prefixOf(subject: string): string {
  return `${CHECKPOINTS}${subject}/`;
}

function keyOf(subject: string, seq: number): string {
  return `${prefixOf(subject)}${String(seq).padStart(SEQ_DIGITS, '0')}`;
}

/** To be raised when the format below or the fold of the same events changes. Checkpoints of other versions are not read. */
export const FORMAT = 1;

/** The origin of a checkpoint. If the log has another mark at `seq`, it is another log. */
interface CheckpointOrigin {
  log: ConversationKey;
  /** For what it is a fold, for example an actor. */
  subject: string;
  seq: number;
  /** The store's mark of the event at `seq`. */
  mark: string;
}

/** `other`: it belongs to another version, which may still use it. `damaged`: nobody can use it. */
type ReadText = { kind: 'read'; mark: string; lines: string[] } | { kind: 'other' | 'damaged' };

/**
 * The text of a checkpoint: a line with the version, a line with the hash of the following lines, a line with its origin, and
 * a line for each packed part of the fold. Releases of Troupe with the same `FORMAT` read each other's.
 */
function writeText(
  version: string,
  { log, subject, seq, mark }: CheckpointOrigin,
  lines: readonly string[],
): string {
  const origin = JSON.stringify([log.tenant, log.conversation, subject, seq, mark]);
  const rest = `${[origin, ...lines].join('\n')}`;
  const first = versionLine(version);
  return `${first}\n${hashOf(first, rest)}\n${rest}`;
}

/** Never throws. */
function readText(
  version: string,
  { log, subject, seq }: Omit<CheckpointOrigin, 'mark'>,
  text: string,
): ReadText {
  const first = text.indexOf('\n');
  const second = text.indexOf('\n', first + 1);
  const third = text.indexOf('\n', second + 1);
  if (first < 0 || second < 0 || third < 0) return { kind: 'damaged' };
  const hashed = hashOf(text.slice(0, first), text.slice(second + 1));
  if (hashed !== text.slice(first + 1, second)) return { kind: 'damaged' };
  if (text.slice(0, first) !== versionLine(version)) return { kind: 'other' };
  try {
    const [tenant, conversation, of, at, mark] = JSON.parse(text.slice(second + 1, third)) as unknown[];
    const isThis = tenant === log.tenant && conversation === log.conversation && of === subject && at === seq;
    if (!isThis || typeof mark !== 'string') return { kind: 'damaged' };
    return {
      kind: 'read',
      mark,
      lines: text.slice(third + 1).split('\n'),
    };
  } catch {
    // The text has a correct hash but was not written by this code.
    return { kind: 'damaged' };
  }
}

function hashOf(first: string, rest: string): string {
  return hash('sha256', `${first}\n${rest}`, 'hex');
}

function versionLine(version: string): string {
  return `troupe checkpoint ${FORMAT}${version}`;
}

/**
 * Converts plain data to text and back: objects, arrays, maps, sets, and values that JSON lacks. It has no schema, so a new
 * field of a fold needs no change here.
 *  1. `unpack(pack(value))` is deeply equal to `value`, including `__proto__` keys, lone surrogates and `undefined`.
 *  2. An object that occurs several times is written once and is one object afterwards. The same holds for long texts,
 *     because a message and the parts from which it was rendered share their text.
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
    // Written after everything to which it refers.
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
/** Keys that are marked, or that JSON escapes: with escapes, V8 13.6 (Node 24) sometimes parses another key. */
const UNSAFE_KEY = /^~|["\\]|\p{Cc}|\p{Surrogate}/u;
/** Minimum characters of a shared text. A shorter one costs less than a reference to it. */
const LONG_TEXT = 24;

/** The objects and long texts that occur more than once. Throws a TypeError for values that cannot be packed. */
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
