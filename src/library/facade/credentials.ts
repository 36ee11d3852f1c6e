import { randomBytes } from 'node:crypto';
import {
  type AccessSettings,
  createAuthenticator,
  createJwtVerifier,
  createKeyRepository,
  type KeyRepository,
  KeyCache,
  type Principal,
} from '../access/index.ts';
import type { Clock } from '../../base/clock.ts';
import { DEFAULT_TENANT, TenantId } from '../../events/index.ts';
import { type KeyValue, updateEntry } from '../../base/key-value.ts';

/** The API keys of all tenants, and the check of credentials. */
export interface Credentials {
  keysOf(tenant: TenantId): KeyRepository;
  authenticate(credential: string): Promise<Principal | null>;
}

/** Keys are entries of the root tenant, so that one lookup finds a key of any tenant. */
export function openCredentials(
  rootEntries: KeyValue,
  { clock, access = {} }: { clock: Clock; access?: AccessSettings | undefined },
): Credentials {
  const cache = new KeyCache(clock);
  const jwt = access.jwt && createJwtVerifier(access.jwt, { clock, fetch });
  const { authenticate } = createAuthenticator({ rootEntries, cache, clock, jwt });
  return {
    keysOf: (tenant) => createKeyRepository({ rootEntries, tenant, cache, clock, randomBytes }),
    authenticate,
  };
}

/** All tenants that ever wrote anything. Background work (archiving, webhooks) goes through this list. */
export interface Tenants {
  /** Asks the store only once per process and tenant. */
  add(tenant: TenantId): Promise<void>;
  list(): Promise<TenantId[]>;
}

const KEY = 'tenants';

export function createTenants(entries: KeyValue): Tenants {
  const stored = new Set<TenantId>([DEFAULT_TENANT]);
  return {
    async add(tenant) {
      if (stored.has(tenant)) return;
      await updateEntry(entries, KEY, parseTenants, (known) =>
        known.includes(tenant) ? null : [...known, tenant],
      );
      stored.add(tenant);
    },
    list: async () => [DEFAULT_TENANT, ...parseTenants(await entries.get(KEY))],
  };
}

function parseTenants(text: string | null): TenantId[] {
  return text === null ? [] : TenantId.array().parse(JSON.parse(text));
}
