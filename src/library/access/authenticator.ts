import type { Clock } from '../../base/clock.ts';
import type { KeyValue } from '../../base/key-value.ts';
import type { KeyCache } from './key-book.ts';
import {
  hashSecret,
  isSameHash,
  entryKeyOf,
  type KeyRecord,
  opens,
  parseKeyRecord,
  parseKeyText,
} from './key-record.ts';
import { ConversationPatterns, type Principal, type Scope, SCOPES } from './principal.ts';
import type { JWTPayload, JWTVerifyOptions } from 'jose';
import { TroupeError } from '../../base/errors.ts';
import { type Author, TenantId } from '../../events/index.ts';
import { type JwtSettings, readPublicKey } from './access-settings.ts';

export interface Authenticator {
  /** The owner of a credential; null for an invalid one, without a reason. */
  authenticate: (credential: string) => Promise<Principal | null>;
}

export interface AuthenticatorParts {
  rootEntries: Pick<KeyValue, 'get'>;
  /** The cache that the key books of this process write to. */
  cache: KeyCache;
  clock: Pick<Clock, 'now'>;
  jwt?: JwtVerifier | null | undefined;
}

/** Longer credentials are refused unread. */
const MAX_CREDENTIAL_CHARS = 8_192;
/** Compared for an unknown id, so that it takes the same time as a known one. */
const NO_HASH = '0'.repeat(64);

export function createAuthenticator({ rootEntries, cache, clock, jwt }: AuthenticatorParts): Authenticator {
  async function read(id: string): Promise<KeyRecord | null> {
    const record = parseKeyRecord(await rootEntries.get(entryKeyOf(id)));
    return record?.id === id ? record : null;
  }

  return {
    async authenticate(credential) {
      if (credential.length > MAX_CREDENTIAL_CHARS) return null;
      const parts = parseKeyText(credential);
      if (!parts) return (await jwt?.verify(credential)) ?? null;
      const record = await cache.find(parts.id, read);
      return checkKey(record, hashSecret(parts.secret), clock.now());
    },
  };
}

function checkKey(record: KeyRecord | null, hash: string, now: number): Principal | null {
  const isCurrent = isSameHash(hash, record?.hash ?? NO_HASH);
  const isPrevious = isSameHash(hash, record?.previous?.hash ?? NO_HASH);
  if (!record || !opens(record, now)) return null;
  const { id, tenant, scopes, author, conversations, previous } = record;
  if (!isCurrent && !(isPrevious && previous && now < previous.until)) return null;
  return { id: `key:${id}`, tenant, scopes, author, conversations };
}

export interface JwtVerifier {
  /** Null for an invalid token, or one for another audience. Throws `store_unavailable` if the issuer's keys cannot be read. */
  verify(token: string): Promise<Principal | null>;
}

/** Like `fetch`, for the one address that the operator has set. */
export type FetchKeys = (
  url: string,
  options: { headers: Headers; method: 'GET'; redirect: 'manual'; signal: AbortSignal },
) => Promise<Response>;

const CLOCK_TOLERANCE_S = 30;
const LOOKS_LIKE_JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const Subject = /^.{1,128}$/su;
const MAX_NAME_CHARS = 200;
/** Error codes of jose for keys that cannot be read. */
const UNREADABLE_KEYS = new Set(['ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID', 'ERR_JOSE_GENERIC']);

type Verify = (token: string, options: JWTVerifyOptions) => Promise<{ payload: JWTPayload }>;

/** Verifies tokens of an application's users. Loads no code and fetches no key before the first token. */
export function createJwtVerifier(
  settings: JwtSettings,
  { clock, fetch }: { clock: Pick<Clock, 'now'>; fetch: FetchKeys },
): JwtVerifier {
  const { issuer, audience, algorithms } = settings;
  let loading: Promise<Verify> | undefined;

  return {
    async verify(token) {
      if (!LOOKS_LIKE_JWT.test(token)) return null;
      const verify = await (loading ??= loadVerify(settings, fetch));
      try {
        const { payload } = await verify(token, {
          issuer,
          audience,
          algorithms,
          clockTolerance: CLOCK_TOLERANCE_S,
          requiredClaims: ['exp', 'sub'],
          currentDate: new Date(clock.now()),
        });
        return principalOf(payload, settings);
      } catch (cause) {
        if (cause instanceof TroupeError) throw cause;
        return null;
      }
    },
  };
}

async function loadVerify({ jwks, publicKey }: JwtSettings, fetch: FetchKeys): Promise<Verify> {
  const { createRemoteJWKSet, customFetch, jwtVerify } = await import('jose');
  if (jwks !== undefined) {
    const keys = createRemoteJWKSet(new URL(jwks), { [customFetch]: fetch });
    return (token, options) => jwtVerify(token, (header, jws) => keys(header, jws).catch(rethrow), options);
  }
  const key = readPublicKey(publicKey ?? '');
  return (token, options) => jwtVerify(token, key, options);
}

/** An unknown key makes the token invalid; unreadable keys do not. */
function rethrow(cause: unknown): never {
  const { code } = Object(cause) as { code?: unknown };
  if (typeof code === 'string' && code.startsWith('ERR_J') && !UNREADABLE_KEYS.has(code)) throw cause;
  const message = 'the keys of the token issuer cannot be fetched now; try again';
  throw new TroupeError('store_unavailable', message, {}, { cause });
}

function principalOf(payload: JWTPayload, settings: JwtSettings): Principal | null {
  const { claims } = settings;
  // JSON may have anything here, and an expression would read it as a text.
  const sub: unknown = payload.sub;
  if (typeof sub !== 'string' || !Subject.test(sub)) return null;
  const tenant = TenantId.safeParse(claims.tenant === undefined ? settings.tenant : payload[claims.tenant]);
  const conversations =
    claims.conversations === undefined
      ? { success: true as const, data: null }
      : ConversationPatterns.safeParse(payload[claims.conversations]);
  if (!tenant.success || !conversations.success) return null;
  const scopes =
    claims.scopes === undefined
      ? settings.scopes
      : scopesIn(payload[claims.scopes]).filter((scope) => settings.scopes.includes(scope));
  return {
    id: `jwt:${sub}`,
    tenant: tenant.data,
    scopes,
    author: authorOf(sub, payload[claims.name]),
    conversations: conversations.data,
  };
}

function scopesIn(claim: unknown): Scope[] {
  const words: unknown[] = typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [];
  return SCOPES.filter((scope) => words.includes(scope));
}

function authorOf(sub: string, name: unknown): Author {
  const isName = typeof name === 'string' && name.trim() !== '';
  return { kind: 'user', id: sub, name: (isName ? name : sub).slice(0, MAX_NAME_CHARS) };
}
