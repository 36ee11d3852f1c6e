import type { ConversationId } from '../events/index.ts';

/** Items are pushed to a path of groups; `shift` takes the next item of the next group that `may` accepts. */
interface Queue<T> {
  push(item: T, path: readonly string[]): void;
  shift(may?: (group: string) => boolean): T | undefined;
  size(): number;
}

export interface FairQueue<T> extends Queue<T> {
  /** Number of waiting items of one tenant. */
  sizeOf(tenant: string): number;
}

/**
 * A queue in which tenants take turns, and so do the families of each tenant: its paths are `[tenant, family]`. A long
 * backlog of one delays the others by one turn only. Within a family it is first in, first out. Every operation takes
 * constant time.
 */
export function createFairQueue<T>(): FairQueue<T> {
  return createTurns(() => createTurns<T>(createFifo));
}

/** Maximum number of groups asked in one `shift`. */
const MOST_ASKED = 64;

/** Groups that take turns. A group is in `groups`, and once in the ring, exactly while it has waiting items. */
function createTurns<T>(createGroup: () => Queue<T>): FairQueue<T> {
  const groups = new Map<string, Queue<T>>();
  const ring = createFifo<string>();
  let size = 0;

  function groupOf(name: string): Queue<T> {
    const known = groups.get(name);
    if (known) return known;
    const group = createGroup();
    groups.set(name, group);
    ring.push(name);
    return group;
  }

  function next(may: (group: string) => boolean): string | undefined {
    for (let left = Math.min(ring.size(), MOST_ASKED); left > 0; left -= 1) {
      const name = ring.shift();
      if (name === undefined || may(name)) return name;
      ring.push(name);
    }
    return undefined;
  }

  return {
    push(item, [name = '', ...path]) {
      groupOf(name).push(item, path);
      size += 1;
    },
    shift(may = () => true) {
      const name = next(may);
      const group = name === undefined ? undefined : groups.get(name);
      if (name === undefined || !group) return undefined;
      const item = group.shift();
      size -= 1;
      if (group.size() > 0) ring.push(name);
      else groups.delete(name);
      return item;
    },
    size: () => size,
    sizeOf: (name) => groups.get(name)?.size() ?? 0,
  };
}

/** A queue with a constant-time `shift`: `Array.shift` is linear once the array is large. */
function createFifo<T>() {
  const COMPACT_AFTER = 1_024;
  let items: T[] = [];
  let head = 0;
  return {
    push: (item: T): void => void items.push(item),
    shift(): T | undefined {
      if (head === items.length) return undefined;
      const item = items[head];
      head += 1;
      if (head === items.length || (head >= COMPACT_AFTER && head * 2 >= items.length)) {
        items = items.slice(head);
        head = 0;
      }
      return item;
    },
    size: (): number => items.length - head,
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
