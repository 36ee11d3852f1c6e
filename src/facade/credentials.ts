import { randomBytes } from 'node:crypto';
import {
  type AccessSettings,
  createAuthenticator,
  createJwtVerifier,
  createKeyBook,
  type KeyBook,
  KeyCache,
  type Principal,
} from '../access/index.ts';
import type { Clock } from '../clock.ts';
import type { TenantId } from '../events/index.ts';
import type { KeyValue } from '../key-value.ts';

/** The keys of all tenants, and who is let in by them. */
export interface Credentials {
  keysOf(tenant: TenantId): KeyBook;
  authenticate(credential: string): Promise<Principal | null>;
}

/** Keys stand in the root tenant's notes, so that one look finds a key whosever it is. */
export function openCredentials(
  rootNotes: KeyValue,
  { clock, access = {} }: { clock: Clock; access?: AccessSettings | undefined },
): Credentials {
  const cache = new KeyCache(clock);
  const jwt = access.jwt && createJwtVerifier(access.jwt, { clock, fetch });
  const { authenticate } = createAuthenticator({ rootNotes, cache, clock, jwt });
  return {
    keysOf: (tenant) => createKeyBook({ rootNotes, tenant, cache, clock, randomBytes }),
    authenticate,
  };
}
