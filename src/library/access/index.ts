/** Access control: scopes, principals, API keys, JWT, limits. */
export { type AccessInput, AccessSettings, PublicUrl } from './access-settings.ts';
export { Origins } from './access-settings.ts';
export { createAuthenticator, createJwtVerifier, type JwtVerifier } from './access-settings.ts';
export {
  createKeyRepository,
  type IssuedKey,
  type KeyRepository,
  KeyCache,
  type KeyInfo,
  MAX_GRACE_MS,
  MAX_KEYS,
  NewKey,
  RotateKey,
} from './keys.ts';
export { KeyRecord } from './keys.ts';
export { covers, isGranted, LOCAL, type Principal, rangesOf, Scope, SCOPES, SERVER_TOKEN } from './keys.ts';
export type { Reading } from './traffic.ts';
export { type Full, Traffic, TRAFFIC, type TrafficLimits, trafficTimes } from './traffic.ts';
export { MOST_WAITING } from './traffic.ts';
export { createSigningKey, type DetachedSignature, type PublicSigningKey, type SigningKey } from './keys.ts';
