/** Who may do what: scopes, principals, API keys, JWT. */
export { createAuthenticator } from './authenticator.ts';
export { AccessSettings } from './access-settings.ts';
export type { Full } from './traffic.ts';
export { covers, isGranted, rangesOf } from './principal.ts';
export { createJwtVerifier } from './authenticator.ts';
export type { JwtVerifier } from './authenticator.ts';
export { createKeyBook, MAX_GRACE_MS, MAX_KEYS, NewKey, RotateKey } from './key-book.ts';
export type { IssuedKey, KeyBook, KeyInfo } from './key-book.ts';
export { KeyCache } from './key-book.ts';
export { KeyRecord } from './key-record.ts';
export { ConversationPatterns, LOCAL, SERVER_TOKEN } from './principal.ts';
export type { Principal } from './principal.ts';
export type { Reading } from './reads.ts';
export { Scope, SCOPES } from './principal.ts';
export { Traffic } from './traffic.ts';
export type { TrafficLimits } from './traffic.ts';
