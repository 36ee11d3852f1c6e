import type { ConversationId } from '../events/index.ts';

/** Items are pushed to `[tenant, family]`; `shift` takes the next item of the next tenant that `may` accepts. */
export interface FairQueue<T> {
  push(item: T, path: readonly [tenant: string, family: string]): void;
  shift(may?: (tenant: string) => boolean): T | undefined;
  size(): number;
  /** Number of waiting items of one tenant. */
  sizeOf(tenant: string): number;
}

/** First in, first out. An array's own `shift` is linear once the array is large. */
interface Line<T> {
  first: Place<T> | null;
  last: Place<T> | null;
}

interface Place<T> {
  item: T;
  next: Place<T> | null;
}

function append<T>(line: Line<T>, item: T): void {
  const place: Place<T> = { item, next: null };
  if (line.last) line.last.next = place;
  else line.first = place;
  line.last = place;
}

function take<T>(line: Line<T>): T | undefined {
  const { first } = line;
  if (!first) return undefined;
  line.first = first.next;
  if (!first.next) line.last = null;
  return first.item;
}

interface Family<T> {
  name: string;
  items: Line<T>;
}

interface Tenant<T> {
  name: string;
  size: number;
  families: Map<string, Family<T>>;
  /** The families in the order of their turns. */
  turns: Line<Family<T>>;
}

/** Maximum number of tenants asked in one `shift`. */
const MOST_ASKED = 64;

/**
 * A queue in which tenants take turns, and so do the families of each tenant. A long backlog of one delays the others by one
 * turn only. Within a family it is first in, first out. Every operation takes constant time. A tenant or family is known, and
 * once among the turns, exactly while it has waiting items.
 */
export function createFairQueue<T>(): FairQueue<T> {
  const tenants = new Map<string, Tenant<T>>();
  const turns: Line<Tenant<T>> = { first: null, last: null };
  let size = 0;

  return {
    push(item, [name, familyName]) {
      let tenant = tenants.get(name);
      if (!tenant) {
        tenant = { name, size: 0, families: new Map(), turns: { first: null, last: null } };
        tenants.set(name, tenant);
        append(turns, tenant);
      }
      let family = tenant.families.get(familyName);
      if (!family) {
        family = { name: familyName, items: { first: null, last: null } };
        tenant.families.set(familyName, family);
        append(tenant.turns, family);
      }
      append(family.items, item);
      tenant.size += 1;
      size += 1;
    },
    shift(may) {
      for (let left = Math.min(tenants.size, MOST_ASKED); left > 0; left -= 1) {
        const tenant = take(turns)!;
        if (may && !may(tenant.name)) {
          append(turns, tenant);
          continue;
        }
        const family = take(tenant.turns)!;
        const item = take(family.items);
        if (family.items.first) append(tenant.turns, family);
        else tenant.families.delete(family.name);
        tenant.size -= 1;
        size -= 1;
        if (tenant.size > 0) append(turns, tenant);
        else tenants.delete(tenant.name);
        return item;
      }
      return undefined;
    },
    size: () => size,
    sizeOf: (tenant) => tenants.get(tenant)?.size ?? 0,
  };
}

/** A thread's id is that of the conversation in which its task began, plus this suffix. */
const THREAD = /^\.d-[0-9a-f]{12}$/;
const THREAD_LENGTH = '.d-0123456789ab'.length;

/**
 * The unit that takes turns within a tenant: a conversation with the threads of its delegated tasks. Derived from the
 * id, without a lookup. A conversation whose id only looks like a thread's shares turns and nothing else.
 */
export function familyOf(conversation: ConversationId): string {
  let end = conversation.length;
  while (end >= THREAD_LENGTH && THREAD.test(conversation.slice(end - THREAD_LENGTH, end)))
    end -= THREAD_LENGTH;
  return conversation.slice(0, end);
}
