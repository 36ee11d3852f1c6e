import { createPublicKey, type KeyObject } from 'node:crypto';
import * as z from 'zod';
import { DEFAULT_TENANT, TenantId } from '../../events/index.ts';
import { CorsSettings } from './cors-settings.ts';
import { Scope } from './principal.ts';

/** Only public-key algorithms: with a shared secret, every verifier could also sign. */
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
] as const;

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
export function readPublicKey(key: string | Record<string, unknown>): KeyObject {
  return typeof key === 'string' ? createPublicKey(key) : createPublicKey({ key, format: 'jwk' });
}

const ClaimName = z.string().min(1).max(200);

/** Names of claims. A token that lacks a named claim is refused or has no rights. */
export interface ClaimNames {
  /** Claim with the tenant. Default: `tenant` of the settings holds. */
  tenant?: string | undefined;
  /** Claim with the scopes: a list, or words separated by spaces. Default: `scopes` of the settings hold. */
  scopes?: string | undefined;
  /** Claim with the conversations: a list of ids, or prefixes that end with `*`. Default: all of the tenant. */
  conversations?: string | undefined;
  /** Claim with the name that is shown. Default `name`. */
  name?: string | undefined;
}

/** Tokens (JWT) that an application issues to its users. Either `jwks` or `publicKey` is given. */
export interface JwtInput {
  /** Value that the claim `iss` must have. */
  issuer: string;
  /** Values of which the claim `aud` must have one. */
  audience: string | readonly string[];
  /** URL of the issuer's public keys; https, or this machine. */
  jwks?: string | undefined;
  /** The issuer's single public key, in PEM or as a JWK. */
  publicKey?: string | Record<string, unknown> | undefined;
  /** Accepted signatures. Default `['RS256', 'ES256', 'EdDSA']`. */
  algorithms?: readonly (typeof JWT_ALGORITHMS)[number][] | undefined;
  /** The most that a user may do. Without `claims.scopes`, every user may do this. Default `['read', 'write']`. */
  scopes?: readonly Scope[] | undefined;
  /** Tenant of all users, if no claim names it. Default `default`. */
  tenant?: string | undefined;
  /** Names of further claims. */
  claims?: ClaimNames | undefined;
}

/** Rates and numbers of requests over HTTP. */
export interface AccessLimits {
  /** Attempts a second per address with credentials that were not recently valid. Default 20. */
  triesPerSecond?: number | undefined;
  /** Requests a second per caller. Default 100. */
  requestsPerSecond?: number | undefined;
  /** Messages a second per author of a tenant. Default 20. */
  messagesPerSecond?: number | undefined;
  /** Rows and KiB a second read for one caller; bursts of ten seconds' worth. Default 20,000. */
  workPerSecond?: number | undefined;
  /** The same per tenant other than `default`. Default: twice that of a caller. */
  tenantWorkPerSecond?: number | undefined;
  /** Concurrent reads of more than 5,000 such units in one process; a caller may have half of them. Default 4. */
  dearReads?: number | undefined;
  /** Open streams of one caller. Default 50. */
  streams?: number | undefined;
  /** Open streams of one tenant other than `default`. Default: half of `allStreams`. */
  tenantStreams?: number | undefined;
  /** Open streams of one process. Default 1,000. */
  allStreams?: number | undefined;
}

/** An address of http or https, without credentials, query and fragment. */
export const PublicUrl = z
  .string()
  .max(2_000)
  .refine((text) => {
    const url = URL.parse(text);
    if (!url || !/^https?:$/.test(url.protocol)) return false;
    return url.username + url.password + url.search + url.hash === '' && !/[?#\s]/.test(text);
  }, 'write an address such as "https://agents.example/inspector": http or https, no query');

/** The `access` block of a definition: who may use the HTTP API beside owners of keys, and how fast. */
export interface AccessInput {
  /** Tokens that an application issues to its users. Default: only keys are accepted. */
  jwt?: JwtInput | undefined;
  /** Rates and numbers of requests. */
  limits?: AccessLimits | undefined;
  /** Where clients reach the API, with the path of its mount; cards of A2A name it and are signed for it alone. Default: only names of this machine. */
  publicUrl?: string | undefined;
  /** Pages of other origins that may use the API. Default: none. */
  cors?: CorsSettings | undefined;
}

export const JwtSettings = z
  .strictObject({
    issuer: z.string().min(1),
    audience: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]),
    jwks: JwksUrl.optional(),
    publicKey: PublicKey.optional(),
    algorithms: z.array(z.enum(JWT_ALGORITHMS)).min(1).default(['RS256', 'ES256', 'EdDSA']),
    scopes: z.array(Scope).default(['read', 'write']),
    tenant: TenantId.default(DEFAULT_TENANT),
    claims: z
      .strictObject({
        tenant: ClaimName.optional(),
        scopes: ClaimName.optional(),
        conversations: ClaimName.optional(),
        name: ClaimName.default('name'),
      })
      .prefault({}),
  })
  .refine(({ jwks, publicKey }) => (jwks === undefined) !== (publicKey === undefined), {
    message: 'give either jwks or publicKey',
    path: ['jwks'],
  });
export type JwtSettings = z.infer<typeof JwtSettings>;

const Rate = z.number().positive().max(1_000_000);

export const AccessSettings = z.strictObject({
  jwt: JwtSettings.optional(),
  publicUrl: PublicUrl.optional(),
  cors: CorsSettings.optional(),
  limits: z
    .strictObject({
      triesPerSecond: Rate.optional(),
      requestsPerSecond: Rate.optional(),
      messagesPerSecond: Rate.optional(),
      workPerSecond: Rate.optional(),
      tenantWorkPerSecond: Rate.optional(),
      dearReads: z.int().min(1).optional(),
      streams: z.int().min(1).optional(),
      tenantStreams: z.int().min(1).optional(),
      allStreams: z.int().min(1).optional(),
    })
    .optional(),
});
export type AccessSettings = z.infer<typeof AccessSettings>;
