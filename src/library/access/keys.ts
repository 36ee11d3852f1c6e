import * as z from 'zod';
import { Author, DEFAULT_TENANT, TenantId, parseGiven } from '../../events/index.ts';
import { createHash, timingSafeEqual, createECDH, createPrivateKey, hkdfSync, sign } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { type KeyValue, updateEntry } from '../../base/key-value.ts';
import { partsOfThread, STEM_KEPT, stemOf } from '../../base/thread-id.ts';

/**
 * Rights of a caller. No scope includes another: a caller with `write` alone cannot read.
 *  - `read`: read and follow conversations.
 *  - `write`: send messages, answer, approve, cancel tasks; with `operate`, import.
 *  - `operate`: all other commands, deleting, and messages of agents and of the system.
 *  - `admin`: keys, webhooks, metrics.
 *  - `erase`: erase what a person has said.
 */
export const SCOPES = ['read', 'write', 'operate', 'admin', 'erase'] as const;
/** A right of a caller. */
export const Scope = z.enum(SCOPES);
export type Scope = z.infer<typeof Scope>;

/** A caller and its rights. */
export interface Principal {
  /** `key:<id>`, `jwt:<subject>`, `server-token`, `local`. */
  id: string;
  /** Id of the tenant. */
  tenant: TenantId;
  /** Its rights. */
  scopes: readonly Scope[];
  /** The only author it may write as; null: each event names its author. */
  author: Author | null;
  /** Conversations it may see and write: ids, or prefixes that end with `*`; null: all of its tenant. */
  conversations: readonly string[] | null;
}

/** A caller without a credential: a process on this machine, or an application that checks its own callers. */
export const LOCAL: Principal = {
  id: 'local',
  tenant: DEFAULT_TENANT,
  scopes: SCOPES,
  author: null,
  conversations: null,
};
export const SERVER_TOKEN: Principal = { ...LOCAL, id: 'server-token' };

const MAX_PATTERNS = 64;
/** The id of a conversation, or a prefix of ids that ends with `*`. */
const ConversationPattern = z
  .string()
  .regex(
    /^(?:[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}\*?|\*)$/,
    "a conversation is an id, or a prefix of ids that ends with '*'",
  );
export const ConversationPatterns = z.array(ConversationPattern).max(MAX_PATTERNS);

/** An id that may equal the shortened stem of a long id. */
const LOOKS_CUT = /^.{91}\.[0-9a-f]{8}$/;

/** Whether the caller was granted a conversation. A thread is granted with its root, never separately. */
export function isGranted(
  { conversations }: Pick<Principal, 'conversations'>,
  conversation: string,
): boolean {
  if (conversations === null) return true;
  const stem = partsOfThread(conversation)?.stem;
  if (stem === undefined) return conversations.some((pattern) => matches(pattern, conversation));
  return conversations.some((pattern) => matchesStem(pattern, stem));
}

/** Whether every id that matches a pattern is granted. */
export function covers({ conversations }: Pick<Principal, 'conversations'>, pattern: string): boolean {
  if (conversations === null) return true;
  const beginning = beginningOf(pattern);
  if (beginning === null) return isGranted({ conversations }, pattern);
  return conversations.some((each) => {
    const own = beginningOf(each);
    return own !== null && beginning.startsWith(own);
  });
}

/** Ranges of ids that contain all matches, threads included. They may also contain ids that `isGranted` refuses. */
export function rangesOf(patterns: readonly string[]): { from: string; to: string }[] {
  const all = patterns.flatMap((pattern) => {
    const beginning = beginningOf(pattern);
    if (beginning !== null) return [withBeginning(beginning)];
    // `!` sorts before all characters of ids, so the range contains only the id itself.
    return [{ from: pattern, to: `${pattern}!` }, withBeginning(`${stemOf(pattern)}.d-`)];
  });
  const apart: { from: string; to: string }[] = [];
  for (const range of all.toSorted((a, b) => (a.from < b.from ? -1 : 1))) {
    const last = apart.at(-1);
    if (!last || range.from > last.to) apart.push(range);
    else if (range.to > last.to) last.to = range.to;
  }
  return apart;
}

/** Ids are ASCII without `~`, so none sorts after it. */
function withBeginning(beginning: string): { from: string; to: string } {
  return { from: beginning, to: `${beginning}~` };
}

function matches(pattern: string, conversation: string): boolean {
  const beginning = beginningOf(pattern);
  return beginning === null ? conversation === pattern : conversation.startsWith(beginning);
}

/** The end of a long root is hashed. A prefix that reaches into the hash grants nothing. */
function matchesStem(pattern: string, stem: string): boolean {
  const beginning = beginningOf(pattern);
  // A caller may have chosen an id that looks like the shortened stem of a long one.
  if (beginning === null) return stem === stemOf(pattern) && !LOOKS_CUT.test(pattern);
  return stem.startsWith(beginning) && !(LOOKS_CUT.test(stem) && beginning.length > STEM_KEPT);
}

/** The beginning that a pattern with `*` names; null for a pattern that is an id. */
function beginningOf(pattern: string): string | null {
  return pattern.endsWith('*') ? pattern.slice(0, -1) : null;
}

const KEY_ID_LENGTH = 12;
const SECRET_BYTES = 32;
const ID_ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
const KEY_ID = /^[a-z2-7]{12}$/;
const KEY = /^trp_([a-z2-7]{12})_([\w-]{43})$/;

const Hash = z.string().regex(/^[0-9a-f]{64}$/);
/** Milliseconds since the epoch. */
const Time = z.int().nonnegative();

/** A key as it is stored, under `key/<id>` of the root tenant. It has only a hash of the secret. */
export const KeyRecord = z.strictObject({
  id: z.string(),
  tenant: TenantId,
  name: z.string(),
  scopes: z.array(Scope),
  author: Author.nullable(),
  conversations: ConversationPatterns.nullable(),
  hash: Hash,
  /** Hash of the secret before the last rotation, while it is still valid. */
  previous: z.strictObject({ hash: Hash, until: Time }).optional(),
  createdAt: Time,
  /** The caller that created it, as `key:<id>`; null: created directly on the data. */
  createdBy: z.string().nullable().default(null),
  expiresAt: Time.nullable(),
  revokedAt: Time.nullable(),
});
export type KeyRecord = z.infer<typeof KeyRecord>;

/** A key without its hashes, for display. */
export type KeyInfo = Omit<KeyRecord, 'hash' | 'previous'> & {
  /** When the secret before the last rotation expires, ms since the epoch. */
  previousUntil: number | null;
};

/** Copies field by field, so that new fields of records are not shown by accident. */
function keyInfo(record: KeyRecord): KeyInfo {
  const { id, tenant, name, scopes, author, conversations } = record;
  const { createdAt, createdBy, expiresAt, revokedAt } = record;
  const previousUntil = record.previous?.until ?? null;
  return {
    id,
    tenant,
    name,
    scopes,
    author,
    conversations,
    createdAt,
    createdBy,
    expiresAt,
    revokedAt,
    previousUntil,
  };
}

/** Whether a key is valid at that time. */
export function opens({ expiresAt, revokedAt }: KeyRecord, now: number): boolean {
  return revokedAt === null && (expiresAt === null || now < expiresAt);
}

export function entryKeyOf(id: string): string {
  return `key/${id}`;
}

/** Null for a missing or invalid record, so that the key is not valid. */
export function parseKeyRecord(text: string | null): KeyRecord | null {
  if (text === null) return null;
  try {
    return KeyRecord.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}

type RandomBytes = (size: number) => Uint8Array;

function newKeyId(randomBytes: RandomBytes): string {
  return [...randomBytes(KEY_ID_LENGTH)].map((byte) => ID_ALPHABET[byte & 31]).join('');
}

function newSecret(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(SECRET_BYTES)).toString('base64url');
}

function isKeyId(text: string): boolean {
  return KEY_ID.test(text);
}

function keyText(id: string, secret: string): string {
  return `trp_${id}_${secret}`;
}

/** Null if the text does not look like a key. */
export function parseKeyText(text: string): { id: string; secret: string } | null {
  const [, id, secret] = KEY.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { id, secret };
}

/** A fast hash is enough, because secrets are random and long. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** Compares hashes in constant time. */
export function isSameHash(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a, 'hex'), Buffer.from(b, 'hex'));
}

/** A public key of the curve P-256 as a JWK. */
export interface PublicSigningKey {
  /** Type of the key. */
  kty: 'EC';
  /** Its curve. */
  crv: 'P-256';
  /** X of the point, base64url. */
  x: string;
  /** Y of the point, base64url. */
  y: string;
  /** The thumbprint of the key (RFC 7638), base64url. */
  kid: string;
  /** The algorithm that it is used with. */
  alg: 'ES256';
  /** Its use: signatures. */
  use: 'sig';
}

/** A detached signature, for a verifier that has the payload. */
export interface DetachedSignature {
  /** The header that is signed, base64url. */
  protected: string;
  /** The signature, base64url. */
  signature: string;
}

/** A key that signs statements of this troupe, such as agent cards. */
export interface SigningKey {
  /** For those who verify. */
  readonly publicKey: PublicSigningKey;
  /** Signs a payload as a JWS. `header` is added to `alg` and `kid`. */
  sign(payload: string, header: Readonly<Record<string, string>>): DetachedSignature;
}

/** Order of the group of P-256. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
/** The order has 16 bytes less: the remainder is then practically uniform (FIPS 186-5, A.2.1). */
const SEED_BYTES = 48;

/** Derived from the store's secret, so it is the same in every process and after a restart, and never stored. */
export function createSigningKey(storeSecret: string, purpose: string): SigningKey {
  const seed = hkdfSync('sha256', storeSecret, '', `troupe ${purpose}`, SEED_BYTES);
  const scalar = (BigInt(`0x${Buffer.from(seed).toString('hex')}`) % (ORDER - 1n)) + 1n;
  const secret = Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex');
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(secret);
  const point = pair.getPublicKey();
  const kind = { kty: 'EC', crv: 'P-256' } as const;
  const place = { x: base64url(point.subarray(1, 33)), y: base64url(point.subarray(33)) };
  const key = createPrivateKey({ key: { ...kind, ...place, d: base64url(secret) }, format: 'jwk' });
  const { crv, kty } = kind;
  const kid = createHash('sha256')
    .update(JSON.stringify({ crv, kty, ...place }))
    .digest('base64url');
  return {
    publicKey: { ...kind, ...place, kid, alg: 'ES256', use: 'sig' },
    sign(payload, header) {
      const shown = base64url(JSON.stringify({ alg: 'ES256', kid, ...header }));
      const signed = Buffer.from(`${shown}.${base64url(payload)}`);
      const signature = sign('sha256', signed, { key, dsaEncoding: 'ieee-p1363' });
      return { protected: shown, signature: base64url(signature) };
    },
  };
}

function base64url(bytes: string | Uint8Array): string {
  return Buffer.from(bytes as string).toString('base64url');
}

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
export interface KeyRepository {
  /** `createdBy`: see `KeyRecord`. Throws `config_invalid`, and `command_refused` if `MAX_KEYS` are still valid. */
  create(key: NewKey, createdBy?: string): Promise<IssuedKey>;
  /** The oldest first. */
  list(): Promise<KeyInfo[]>;
  /** Creates a new secret for a key; the old one stays valid for `graceMs`. Null: no valid key has this id. */
  rotate(id: string, options?: { graceMs?: number | undefined }): Promise<IssuedKey | null>;
  /** Revokes a key; repeating it changes nothing. Null: the key does not exist. */
  revoke(id: string): Promise<KeyInfo | null>;
}

interface KeyRepositoryParts {
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
export function createKeyRepository(parts: KeyRepositoryParts): KeyRepository {
  const { rootEntries, tenant, cache, clock, randomBytes } = parts;
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
  async function change(id: string, apply: (record: KeyRecord) => KeyRecord | null) {
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

/** Time after which a cached key is looked up again, because another process may have revoked it. */
const KEY_LIFE_MS = 2_000;
const MAX_KNOWN = 5_000;
const MAX_UNKNOWN = 5_000;

interface Entry {
  record: KeyRecord | null;
  at: number;
}

/**
 * Recently looked-up keys. One per process, shared by its key repositories and its authenticator.
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
