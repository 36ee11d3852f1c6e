import * as z from 'zod';
import { createPublicKey, type KeyObject } from 'node:crypto';
import { DEFAULT_TENANT, TenantId, tryParse, type Author } from '../../events/index.ts';
import {
  Scope,
  type KeyCache,
  hashSecret,
  isSameHash,
  entryKeyOf,
  type KeyRecord,
  opens,
  parseKeyRecord,
  parseKeyText,
  ConversationPatterns,
  type Principal,
  SCOPES,
} from './keys.ts';
import type { Clock } from '../../base/clock.ts';
import type { KeyValue } from '../../base/key-value.ts';
import type { JWTPayload, JWTVerifyOptions } from 'jose';
import { TroupeError } from '../../base/errors.ts';
import type { InputOf } from '../../base/input-of.ts';

/** Accepted signatures. Only public-key algorithms: with a shared secret, every verifier could also sign. */
const JWT_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);
const JwksUrl = z
  .url({ protocol: /^https?$/ })
  .refine(
    (text) => URL.parse(text)?.protocol === 'https:' || LOOPBACK.has(URL.parse(text)?.hostname ?? ''),
    'keys must be fetched over https: except from this machine',
  );

const PublicKey = z.union([z.string(), z.record(z.string(), z.unknown())]).refine((key) => {
  const isPrivate = typeof key === 'string' ? key.includes('PRIVATE KEY') : 'd' in key;
  if (isPrivate) return false;
  try {
    return readPublicKey(key).type === 'public';
  } catch {
    return false;
  }
}, 'this is not a public key, in PEM or as a JWK');

/** Throws for an invalid key. */
function readPublicKey(key: string | Record<string, unknown>): KeyObject {
  return typeof key === 'string' ? createPublicKey(key) : createPublicKey({ key, format: 'jwk' });
}

const ClaimName = z.string().min(1).max(200);

/** An address of http or https, without credentials, query and fragment. */
export const PublicUrl = z
  .string()
  .max(2_000)
  .refine((text) => {
    const url = URL.parse(text);
    if (!url || !/^https?:$/.test(url.protocol)) return false;
    return url.username + url.password + url.search + url.hash === '' && !/[?#\s]/.test(text);
  }, 'write an address such as "https://agents.example/inspector": http or https, no query');

/** Tokens (JWT) that an application issues to its users. Either `jwks` or `publicKey` is given. */
const JwtSettings = z
  .strictObject({
    /** Value that the claim `iss` must have. */
    issuer: z.string().min(1),
    /** Values of which the claim `aud` must have one. */
    audience: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]),
    /** URL of the issuer's public keys; https, or this machine. */
    jwks: JwksUrl.optional(),
    /** The issuer's single public key, in PEM or as a JWK. */
    publicKey: PublicKey.optional(),
    /** The most that a user may do. Without `claims.scopes`, every user may do all of it. Default `['read', 'write']`. */
    scopes: z.array(Scope).default(['read', 'write']),
    /** Tenant of all users, if no claim names it. Default `default`. */
    tenant: TenantId.default(DEFAULT_TENANT),
    /** Names of further claims. A token that lacks a named claim is refused or has no rights. */
    claims: z
      .strictObject({
        /** Claim with the tenant. Default: `tenant` of the settings. */
        tenant: ClaimName.optional(),
        /** Claim with the scopes: a list, or words separated by spaces. Default: `scopes` of the settings. */
        scopes: ClaimName.optional(),
        /** Claim with the conversations: a list of ids, or prefixes that end with `*`. Default: all of the tenant. */
        conversations: ClaimName.optional(),
      })
      .prefault({}),
  })
  .refine(({ jwks, publicKey }) => (jwks === undefined) !== (publicKey === undefined), {
    message: 'give either jwks or publicKey',
    path: ['jwks'],
  });
type JwtSettings = z.infer<typeof JwtSettings>;

/** As browsers send it: without a path, a slash at the end, or the default port. */
const Origin = z
  .string()
  .refine(
    (text) => /^https?:/.test(text) && URL.parse(text)?.origin === text,
    'write an origin as browsers send it, such as "https://app.example" or "http://localhost:5173": no path, no slash at the end, no "*"',
  );

/** Origins as browsers send them, such as `https://app.example`; 1 to 100. */
export const Origins = z.array(Origin).min(1).max(100);

export const AccessSettings = z.strictObject({
  /** Tokens that an application issues to its users. Default: only keys are accepted. */
  jwt: JwtSettings.optional(),
  /** Where clients reach the API, with the path of its mount. A2A cards are signed for it alone. Default: this machine's names. */
  publicUrl: PublicUrl.optional(),
  /** Pages of other origins that may use the API. Default: none. */
  cors: Origins.optional(),
  /**
   * Multiplies the rate limits of a caller: 100 requests and 20 messages per author a second, work of reads, new
   * credentials, open streams. For programs that speak for many people with one key; 1 to 10,000. Default 1.
   */
  limits: z.number().min(1).max(10_000).optional(),
});
export type AccessSettings = z.infer<typeof AccessSettings>;
/** The `access` block of a definition: who may use the HTTP API besides owners of keys, and how fast. */
export interface AccessInput extends InputOf<typeof AccessSettings> {}

interface Authenticator {
  /** The owner of a credential; null for an invalid one, without a reason. */
  authenticate: (credential: string) => Promise<Principal | null>;
}

interface AuthenticatorParts {
  rootEntries: Pick<KeyValue, 'get'>;
  /** The cache that the key repositories of this process write to. */
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

/** Like `fetch`, but only for the address that the operator has set. */
type FetchKeys = (
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
  const { issuer, audience } = settings;
  let loading: Promise<Verify> | undefined;

  return {
    async verify(token) {
      if (!LOOKS_LIKE_JWT.test(token)) return null;
      const verify = await (loading ??= loadVerify(settings, fetch));
      try {
        const { payload } = await verify(token, {
          issuer,
          audience,
          algorithms: JWT_ALGORITHMS,
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
  // The JSON may have any value here, and a regular expression would convert it to text.
  const sub: unknown = payload.sub;
  if (typeof sub !== 'string' || !Subject.test(sub)) return null;
  const tenant = tryParse(TenantId, claims.tenant === undefined ? settings.tenant : payload[claims.tenant]);
  const conversations =
    claims.conversations === undefined
      ? { success: true as const, data: null }
      : tryParse(ConversationPatterns, payload[claims.conversations]);
  if (!tenant.success || !conversations.success) return null;
  const scopes =
    claims.scopes === undefined
      ? settings.scopes
      : scopesIn(payload[claims.scopes]).filter((scope) => settings.scopes.includes(scope));
  return {
    id: `jwt:${sub}`,
    tenant: tenant.data,
    scopes,
    author: authorOf(sub, payload['name']),
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
