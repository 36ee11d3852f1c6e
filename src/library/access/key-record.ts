import { createHash, timingSafeEqual } from 'node:crypto';
import * as z from 'zod';
import { Author, TenantId } from '../../events/index.ts';
import { ConversationPatterns, Scope } from './principal.ts';

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
export function keyInfo(record: KeyRecord): KeyInfo {
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

export type RandomBytes = (size: number) => Uint8Array;

export function newKeyId(randomBytes: RandomBytes): string {
  return [...randomBytes(KEY_ID_LENGTH)].map((byte) => ID_ALPHABET[byte & 31]).join('');
}

export function newSecret(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(SECRET_BYTES)).toString('base64url');
}

export function isKeyId(text: string): boolean {
  return KEY_ID.test(text);
}

export function keyText(id: string, secret: string): string {
  return `trp_${id}_${secret}`;
}

/** Null if the text does not look like a key. */
export function parseKeyText(text: string): { id: string; secret: string } | null {
  const [, id, secret] = KEY.exec(text) ?? [];
  return id === undefined || secret === undefined ? null : { id, secret };
}

/** Secrets are random and long, so that a fast hash is as good as a slow one. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** Compares hashes in constant time. */
export function isSameHash(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a, 'hex'), Buffer.from(b, 'hex'));
}
