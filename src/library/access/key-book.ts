import * as z from 'zod';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { Author, parseGiven, type TenantId } from '../../events/index.ts';
import { type KeyValue, updateEntry } from '../../base/key-value.ts';
import {
  hashSecret,
  isKeyId,
  type KeyInfo,
  keyInfo,
  entryKeyOf,
  type KeyRecord,
  keyText,
  newKeyId,
  newSecret,
  opens,
  parseKeyRecord,
  type RandomBytes,
} from './key-record.ts';
import { ConversationPatterns, Scope } from './principal.ts';

export type { KeyInfo } from './key-record.ts';

export const MAX_KEYS = 1_000;
export const MAX_GRACE_MS = 30 * 24 * 3_600_000;
/** Keys read at once for a list. */
const BATCH = 50;

export const NewKey = z.strictObject({
  /** Name for people. */
  name: z.string().trim().min(1).max(100).meta({ pattern: '\\S' }),
  scopes: z
    .array(Scope)
    .min(1)
    .max(16)
    .transform((scopes) => [...new Set(scopes)]),
  /** The only author it may write as. Default: each event names its author. */
  author: Author.optional(),
  /** Conversations it may see. Default: all of its tenant. */
  conversations: ConversationPatterns.min(1).optional(),
  /** When it expires, ms since the epoch. Default: never. */
  expiresAt: z.int().nonnegative().optional(),
});
export type NewKey = z.input<typeof NewKey>;

/** `secret` is the whole text of the key. It is not stored and cannot be read again. */
export interface IssuedKey {
  /** What is stored of it. */
  key: KeyInfo;
  /** The key itself. Shown once, never stored. */
  secret: string;
}

/** The API keys of one tenant. Revoked keys stay in the list until their places are needed. */
export interface KeyBook {
  /** `createdBy`: see `KeyRecord`. Throws `config_invalid`, and `command_refused` if `MAX_KEYS` are still valid. */
  create(key: NewKey, createdBy?: string): Promise<IssuedKey>;
  /** The oldest first. */
  list(): Promise<KeyInfo[]>;
  /** Creates a new secret for a key; the old one stays valid for `graceMs`. Null: no valid key has this id. */
  rotate(id: string, options?: { graceMs?: number | undefined }): Promise<IssuedKey | null>;
  /** Revokes a key; repeating it changes nothing. Null: the key does not exist. */
  revoke(id: string): Promise<KeyInfo | null>;
}

export interface KeyBookParts {
  /** Entries of the default tenant. They contain the keys of all tenants, so that one read finds a key by its id. */
  rootEntries: Pick<KeyValue, 'get' | 'compareAndSet'>;
  tenant: TenantId;
  cache: KeyCache;
  clock: Pick<Clock, 'now'>;
  randomBytes: RandomBytes;
}

const Ids = z.array(z.string());

/**
 * Owns `key/<id>` and, per tenant, `keys/<tenant>` with the ids.
 *  1. The index has an id before its key is written: every valid key is listed.
 *  2. Every written record enters the cache, so that it takes effect in this process at once.
 */
export function createKeyBook({ rootEntries, tenant, cache, clock, randomBytes }: KeyBookParts): KeyBook {
  const index = `keys/${tenant}`;

  async function read(id: string): Promise<KeyRecord | null> {
    if (!isKeyId(id)) return null;
    const record = parseKeyRecord(await rootEntries.get(entryKeyOf(id)));
    return record?.id === id && record.tenant === tenant ? record : null;
  }

  async function readAll(ids: readonly string[]): Promise<KeyRecord[]> {
    return (await inBatches(ids, read)).filter((record) => record !== null);
  }

  async function listed(): Promise<string[]> {
    return parseIds(await rootEntries.get(index));
  }

  /** Ids of keys that are no longer valid, whose places may be reused. An id without a record may be about to get one. */
  async function spent(): Promise<Set<string>> {
    const records = await readAll(await listed());
    return new Set(records.filter((record) => !opens(record, clock.now())).map(({ id }) => id));
  }

  async function enter(id: string): Promise<void> {
    const isFull = (await listed()).length >= MAX_KEYS;
    const over = isFull ? await spent() : new Set<string>();
    await updateEntry(rootEntries, index, parseIds, (ids) => {
      const kept = over.size > 0 ? ids.filter((each) => !over.has(each)) : ids;
      if (kept.length < MAX_KEYS) return [...kept, id];
      const message = `tenant ${tenant} has ${MAX_KEYS} keys: revoke the unused ones`;
      throw new TroupeError('command_refused', message, { limit: MAX_KEYS });
    });
  }

  /** Null if the tenant has no such key, or `apply` returns null. */
  async function change(
    id: string,
    apply: (record: KeyRecord) => KeyRecord | null,
  ): Promise<KeyRecord | null> {
    if ((await read(id)) === null) return null;
    const record = await updateEntry(rootEntries, entryKeyOf(id), parseKeyRecord, (stored) =>
      stored && stored.tenant === tenant ? apply(stored) : null,
    );
    if (record?.tenant !== tenant) return null;
    cache.put(record);
    return record;
  }

  return {
    async create(given, createdBy) {
      const { id, secret, record } = newRecord({ tenant, given, createdBy, now: clock.now(), randomBytes });
      await enter(id);
      const text = JSON.stringify(record);
      if ((await rootEntries.compareAndSet(entryKeyOf(id), null, text)) !== text)
        throw new TroupeError('internal', `two keys have the id ${id}: the random source repeats`);
      cache.put(record);
      return { key: keyInfo(record), secret: keyText(id, secret) };
    },
    async list() {
      return (await readAll(await listed())).map(keyInfo);
    },
    async rotate(id, options = {}) {
      const { graceMs } = parseGiven(RotateKey, options, 'the key');
      const secret = newSecret(randomBytes);
      const hash = hashSecret(secret);
      const record = await change(id, (stored) => {
        if (!opens(stored, clock.now())) return null;
        const previous = graceMs > 0 ? { hash: stored.hash, until: clock.now() + graceMs } : undefined;
        return { ...stored, hash, previous };
      });
      return record?.hash === hash ? { key: keyInfo(record), secret: keyText(id, secret) } : null;
    },
    async revoke(id) {
      const record = await change(id, (stored) =>
        stored.revokedAt === null ? { ...stored, previous: undefined, revokedAt: clock.now() } : null,
      );
      return record && keyInfo(record);
    },
  };
}

interface NewRecordParts {
  tenant: TenantId;
  given: NewKey;
  createdBy: string | undefined;
  now: number;
  randomBytes: RandomBytes;
}

/** Throws `config_invalid`. */
function newRecord(parts: NewRecordParts): { id: string; secret: string; record: KeyRecord } {
  const { tenant, createdBy = null, now, randomBytes } = parts;
  const given = parseGiven(NewKey, parts.given, 'the key');
  const { name, scopes, author = null, conversations = null, expiresAt = null } = given;
  if (expiresAt !== null && expiresAt <= now) throw isOver();
  const [id, secret] = [newKeyId(randomBytes), newSecret(randomBytes)];
  const hash = hashSecret(secret);
  const rights = { name, scopes, author, conversations };
  const record = { id, tenant, ...rights, hash, createdAt: now, createdBy, expiresAt, revokedAt: null };
  return { id, secret, record };
}

async function inBatches<T, R>(items: readonly T[], read: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += BATCH) {
    results.push(...(await Promise.all(items.slice(from, from + BATCH).map(read))));
  }
  return results;
}

/** How long the old secret stays valid beside the new one. */
export const RotateKey = z.strictObject({ graceMs: z.int().min(0).max(MAX_GRACE_MS).default(0) });

function isOver(): TroupeError {
  const problem = { path: 'expiresAt', message: 'is in the past: the key would never be valid' };
  return new TroupeError('config_invalid', `${problem.path} ${problem.message}`, { problems: [problem] });
}

function parseIds(text: string | null): string[] {
  return text === null ? [] : Ids.parse(JSON.parse(text));
}

/** After this time a key is looked up again: another process may have revoked it. */
const KEY_LIFE_MS = 2_000;
const MAX_KNOWN = 5_000;
const MAX_UNKNOWN = 5_000;

interface Entry {
  record: KeyRecord | null;
  at: number;
}

/**
 * Recently looked-up keys. One per process, shared by its key books and its authenticator.
 *  1. A record written by this process takes effect at once, even over an earlier lookup that is still running.
 *  2. Unknown ids are cached apart, so that guesses evict no key.
 */
export class KeyCache {
  readonly #known = new Map<string, Entry>();
  readonly #unknown = new Map<string, Entry>();
  readonly #clock: Pick<Clock, 'monotonic'>;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  async find(id: string, read: (id: string) => Promise<KeyRecord | null>): Promise<KeyRecord | null> {
    const before = this.#entry(id);
    if (before && this.#clock.monotonic() - before.at < KEY_LIFE_MS) return before.record;
    const at = this.#clock.monotonic();
    const record = await read(id);
    const now = this.#entry(id);
    if (now && now !== before) return now.record;
    this.#set(id, { record, at });
    return record;
  }

  /** Records that were just written. */
  put(record: KeyRecord): void {
    this.#set(record.id, { record, at: this.#clock.monotonic() });
  }

  #entry(id: string): Entry | undefined {
    return this.#known.get(id) ?? this.#unknown.get(id);
  }

  #set(id: string, entry: Entry): void {
    this.#known.delete(id);
    this.#unknown.delete(id);
    const [entries, most] = entry.record ? [this.#known, MAX_KNOWN] : [this.#unknown, MAX_UNKNOWN];
    entries.set(id, entry);
    const [oldest] = entries.keys();
    if (entries.size > most && oldest !== undefined) entries.delete(oldest);
  }
}
