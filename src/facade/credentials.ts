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
import { DEFAULT_TENANT, TenantId } from '../events/index.ts';
import { type KeyValue, updateEntry } from '../key-value.ts';

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

/** Who has ever written anything here, so that what runs by itself (archiving, webhooks) reaches every tenant. */
export interface Tenants {
  /** Remembers one; asks the store once per process and tenant. */
  note(tenant: TenantId): Promise<void>;
  list(): Promise<TenantId[]>;
}

const KEY = 'tenants';

export function createTenants(notes: KeyValue): Tenants {
  const noted = new Set<TenantId>([DEFAULT_TENANT]);
  return {
    async note(tenant) {
      if (noted.has(tenant)) return;
      await updateEntry(notes, KEY, parseTenants, (known) =>
        known.includes(tenant) ? null : [...known, tenant],
      );
      noted.add(tenant);
    },
    list: async () => [DEFAULT_TENANT, ...parseTenants(await notes.get(KEY))],
  };
}

function parseTenants(text: string | null): TenantId[] {
  return text === null ? [] : TenantId.array().parse(JSON.parse(text));
}
