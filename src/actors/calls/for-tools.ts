import { LRUCache } from 'lru-cache';
import type { EventId } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';

interface Place extends ConversationKey {
  id: EventId;
}

/** Values that came with messages, for tools in this process. They are never stored, and go with the process. */
export interface ForTools {
  get(place: Place): unknown;
  /** The function takes the value back. */
  set(place: Place, value: unknown): () => void;
  /** Drops those of a deleted conversation: another may get its id, and messages theirs. */
  forget(conversation: ConversationKey): void;
}

/** Most messages whose values are kept; the oldest go first. */
const KEPT = 10_000;

export function createForTools(): ForTools {
  const values = new LRUCache<string, { value: unknown }>({ max: KEPT });
  return {
    get: (place) => values.get(keyOf(place))?.value,
    set(place, value) {
      const key = keyOf(place);
      const before = values.get(key);
      values.set(key, { value });
      return () => void (before ? values.set(key, before) : values.delete(key));
    },
    forget(conversation) {
      const prefix = prefixOf(conversation);
      const own = [...values.keys()].filter((key) => key.startsWith(prefix));
      for (const key of own) values.delete(key);
    },
  };
}

function keyOf(place: Place): string {
  return `${prefixOf(place)}${place.id}`;
}

function prefixOf({ tenant, conversation }: ConversationKey): string {
  return `${tenant}/${conversation}/`;
}
