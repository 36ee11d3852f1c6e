import type { Clock } from '../clock.ts';
import type { KeyValue } from '../key-value.ts';
import type { JwtVerifier } from './jwt.ts';
import type { KeyCache } from './key-cache.ts';
import {
  hashSecret,
  isSameHash,
  keyNote,
  type KeyRecord,
  opens,
  parseKeyRecord,
  parseKeyText,
} from './key-record.ts';
import type { Principal } from './principal.ts';

export interface Authenticator {
  /** Whose credential it is; null for whatever is none, for no reason given. */
  authenticate: (credential: string) => Promise<Principal | null>;
}

export interface AuthenticatorParts {
  rootNotes: Pick<KeyValue, 'get'>;
  /** The one that the key books of this process write into. */
  cache: KeyCache;
  clock: Pick<Clock, 'now'>;
  jwt?: JwtVerifier | null | undefined;
}

/** Longer ones are not looked at. */
const MAX_CREDENTIAL_CHARS = 8_192;
/** What is compared where there is nothing to compare with: an unknown id takes the work of a known one. */
const NO_HASH = '0'.repeat(64);

export function createAuthenticator({ rootNotes, cache, clock, jwt }: AuthenticatorParts): Authenticator {
  async function read(id: string): Promise<KeyRecord | null> {
    const record = parseKeyRecord(await rootNotes.get(keyNote(id)));
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
