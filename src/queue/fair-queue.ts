import type { ConversationId } from '../events/index.ts';

/**
 * A queue in which tenants take turns, and the families of one tenant among themselves: what one of them has waiting
 * delays another by one turn, however much it is. First in, first out within a family. Every operation costs the same,
 * whatever waits.
 *  F1  A tenant is in the ring, and a family in the ring of its tenant, once, exactly while something of it waits.
 */
export interface FairQueue<T> {
  push(item: T, place: { tenant: string; family: string }): void;
  /** The next item of the next tenant that `may` start now. A tenant that may not keeps its place. */
  shift(may?: (tenant: string) => boolean): T | undefined;
  size(): number;
  /** Number of waiting items of one tenant. */
  sizeOf(tenant: string): number;
}

interface Family<T> {
  name: string;
  items: Fifo<T>;
}

interface Tenant<T> {
  name: string;
  size: number;
  families: Map<string, Family<T>>;
  ring: Fifo<Family<T>>;
}

/** Maximum number of tenants asked in one `shift`. */
const MOST_ASKED = 64;

export function createFairQueue<T>(): FairQueue<T> {
  const tenants = new Map<string, Tenant<T>>();
  const ring = createFifo<Tenant<T>>();
  let size = 0;

  function tenantOf(name: string): Tenant<T> {
    const known = tenants.get(name);
    if (known) return known;
    const tenant = { name, size: 0, families: new Map(), ring: createFifo<Family<T>>() };
    tenants.set(name, tenant);
    ring.push(tenant);
    return tenant;
  }

  function familyIn(tenant: Tenant<T>, name: string): Family<T> {
    const known = tenant.families.get(name);
    if (known) return known;
    const family = { name, items: createFifo<T>() };
    tenant.families.set(name, family);
    tenant.ring.push(family);
    return family;
  }

  function nextTenant(may: (tenant: string) => boolean): Tenant<T> | undefined {
    for (let left = Math.min(ring.size(), MOST_ASKED); left > 0; left -= 1) {
      const tenant = ring.shift();
      if (!tenant || may(tenant.name)) return tenant;
      ring.push(tenant);
    }
    return undefined;
  }

  return {
    push(item, place) {
      const tenant = tenantOf(place.tenant);
      familyIn(tenant, place.family).items.push(item);
      tenant.size += 1;
      size += 1;
    },
    shift(may = () => true) {
      const tenant = nextTenant(may);
      const family = tenant?.ring.shift();
      if (!tenant || !family) return undefined;
      const item = family.items.shift();
      tenant.size -= 1;
      size -= 1;
      if (family.items.size() > 0) tenant.ring.push(family);
      else tenant.families.delete(family.name);
      if (tenant.size > 0) ring.push(tenant);
      else tenants.delete(tenant.name);
      return item;
    },
    size: () => size,
    sizeOf: (tenant) => tenants.get(tenant)?.size ?? 0,
  };
}

interface Fifo<T> {
  push(item: T): void;
  shift(): T | undefined;
  size(): number;
}

/** A queue whose `shift` does not move the rest: `Array.shift` is linear once the array is large. */
function createFifo<T>(): Fifo<T> {
  const COMPACT_AFTER = 1_024;
  let items: T[] = [];
  let head = 0;
  return {
    push: (item) => void items.push(item),
    shift() {
      if (head === items.length) return undefined;
      const item = items[head];
      head += 1;
      if (head === items.length || (head >= COMPACT_AFTER && head * 2 >= items.length)) {
        items = items.slice(head);
        head = 0;
      }
      return item;
    },
    size: () => items.length - head,
  };
}

/** Threads are named after the conversation that their tasks began in. */
const THREAD = /^\.d-[0-9a-f]{12}$/;
const THREAD_LENGTH = '.d-0123456789ab'.length;

/**
 * The unit that takes turns within a tenant: a conversation with the threads of its delegated tasks. Read from the name,
 * so no lookup is needed. A conversation that only looks like a thread shares turns and nothing else.
 */
export function familyOf(conversation: ConversationId): string {
  let end = conversation.length;
  while (end >= THREAD_LENGTH && THREAD.test(conversation.slice(end - THREAD_LENGTH, end)))
    end -= THREAD_LENGTH;
  return conversation.slice(0, end);
}
