import { DEFAULT_TENANT, TenantId } from '../events/index.ts';
import { updateEntry, type KeyValue } from '../key-value.ts';

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
