/** Access control: scopes, principals, API keys, JWT, limits. */
export { type AccessInput, AccessSettings, PublicUrl } from './access-settings.ts';
export { CorsSettings } from './cors-settings.ts';
export { createAuthenticator, createJwtVerifier, type JwtVerifier } from './authenticator.ts';
export {
  createKeyBook,
  type IssuedKey,
  type KeyBook,
  KeyCache,
  type KeyInfo,
  MAX_GRACE_MS,
  MAX_KEYS,
  NewKey,
  RotateKey,
} from './key-book.ts';
export { KeyRecord } from './key-record.ts';
export {
  covers,
  isGranted,
  isThreadOf,
  LOCAL,
  type Principal,
  rangesOf,
  Scope,
  SCOPES,
  SERVER_TOKEN,
} from './principal.ts';
export type { Reading } from './reads.ts';
export { type Full, Traffic, type TrafficLimits } from './traffic.ts';
export { MOST_WAITING } from './turnstile.ts';
export {
  createSigningKey,
  type DetachedSignature,
  type PublicSigningKey,
  type SigningKey,
} from './signing-key.ts';
