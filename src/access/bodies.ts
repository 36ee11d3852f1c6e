import { DEFAULT_TENANT, type TenantId } from '../events/index.ts';
import type { Principal } from './principal.ts';

const MIB = 1_024 * 1_024;
/** Of bodies that are not read to their end yet. A tenant other than `default` leaves half to others. */
const MOST_BYTES = { caller: 128 * MIB, tenant: 256 * MIB, process: 512 * MIB };

export type BodyBounds = typeof MOST_BYTES;

/** Whose bodies are too many at once, and how many bytes they may have. */
export interface Full {
  full: keyof BodyBounds;
  limit: number;
}

/** The bytes of one body. */
export interface HeldBody {
  /** Null where there is room for so many more. */
  grow(bytes: number): Full | null;
  end(): void;
}

/**
 * What bodies under way hold of the memory of this process: each may take minutes to come, and many come at once. Owns the
 * sums; whoever opens a body ends it.
 */
export class Bodies {
  readonly #most: BodyBounds;
  readonly #callers = new Map<string, number>();
  readonly #tenants = new Map<TenantId, number>();
  #all = 0;

  constructor(most: BodyBounds = MOST_BYTES) {
    this.#most = most;
  }

  open({ tenant, id }: Principal): HeldBody {
    const caller = `${tenant} ${id}`;
    let held = 0;
    const add = (bytes: number) => {
      held += bytes;
      this.#all += bytes;
      addTo(this.#callers, caller, bytes);
      addTo(this.#tenants, tenant, bytes);
    };
    return {
      grow: (bytes) => {
        const after: BodyBounds = {
          caller: (this.#callers.get(caller) ?? 0) + bytes,
          tenant: tenant === DEFAULT_TENANT ? 0 : (this.#tenants.get(tenant) ?? 0) + bytes,
          process: this.#all + bytes,
        };
        const full = (['caller', 'tenant', 'process'] as const).find((of) => after[of] > this.#most[of]);
        if (full !== undefined) return { full, limit: this.#most[full] };
        add(bytes);
        return null;
      },
      end: () => add(-held),
    };
  }
}

function addTo<K>(sums: Map<K, number>, key: K, bytes: number): void {
  const sum = (sums.get(key) ?? 0) + bytes;
  if (sum > 0) sums.set(key, sum);
  else sums.delete(key);
}
