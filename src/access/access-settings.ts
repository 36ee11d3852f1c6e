import { createPublicKey, type KeyObject } from 'node:crypto';
import * as z from 'zod';
import { DEFAULT_TENANT, TenantId } from '../events/index.ts';
import { Scope } from './principal.ts';

/** Where the verifier has a secret, whoever verifies can sign: only public keys, and never `none`. */
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
    'keys are fetched over https: but from this machine',
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

/** Throws where it is none. */
export function readPublicKey(key: string | Record<string, unknown>): KeyObject {
  return typeof key === 'string' ? createPublicKey(key) : createPublicKey({ key, format: 'jwk' });
}

const ClaimName = z.string().min(1).max(200);

export const JwtSettings = z
  .strictObject({
    issuer: z.string().min(1),
    audience: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]),
    /** Where the public keys of the issuer are, or the one that it has. */
    jwks: JwksUrl.optional(),
    publicKey: PublicKey.optional(),
    algorithms: z.array(z.enum(JWT_ALGORITHMS)).min(1).default(['RS256', 'ES256', 'EdDSA']),
    /** The most that a user may do. Without `claims.scopes`, every user may do this. */
    scopes: z.array(Scope).default(['read', 'write']),
    /** Tenant of all users, where no claim names it. */
    tenant: TenantId.default(DEFAULT_TENANT),
    /** Names of the claims that say more. A token without one that is named here is refused, or may nothing. */
    claims: z
      .strictObject({
        tenant: ClaimName.optional(),
        /** Words with blanks between them, or a list. */
        scopes: ClaimName.optional(),
        /** A list of ids, or beginnings that end with `*`. */
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

/** `access` of the agents file. */
export const AccessSettings = z.strictObject({
  /** Users of an application, who have tokens from it. */
  jwt: JwtSettings.optional(),
  limits: z
    .strictObject({
      /** Attempts per address with credentials that were not valid lately. Default 20. */
      triesPerSecond: Rate.optional(),
      /** Per caller. Default 100. */
      requestsPerSecond: Rate.optional(),
      /** Per author of a tenant. Default 20. */
      messagesPerSecond: Rate.optional(),
      /** Rows, and KiB, read for one caller; ten seconds' worth at once. Default 20,000. */
      workPerSecond: Rate.optional(),
      /** Per tenant other than `default`. Default: twice that of a caller. */
      tenantWorkPerSecond: Rate.optional(),
      /** Reads of more than 5,000 such units that are under way in one process; half of them of one caller. Default 4. */
      dearReads: z.int().min(1).optional(),
      /** Open streams of one caller. Default 50. */
      streams: z.int().min(1).optional(),
      /** Open streams of one tenant other than `default`. Default: half of `allStreams`. */
      tenantStreams: z.int().min(1).optional(),
      /** Open streams of one process. Default 1,000. */
      allStreams: z.int().min(1).optional(),
    })
    .optional(),
});
export type AccessSettings = z.infer<typeof AccessSettings>;
