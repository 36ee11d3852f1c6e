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
  // Made with the first value: it takes its room at once, and most conversations bring none.
  let values: LRUCache<string, { value: unknown }> | null = null;
  return {
    get: (place) => values?.get(keyOf(place))?.value,
    set(place, value) {
      const kept = (values ??= new LRUCache({ max: KEPT }));
      const key = keyOf(place);
      const before = kept.get(key);
      kept.set(key, { value });
      return () => void (before ? kept.set(key, before) : kept.delete(key));
    },
    forget(conversation) {
      const prefix = prefixOf(conversation);
      for (const key of values?.keys() ?? []) if (key.startsWith(prefix)) values?.delete(key);
    },
  };
}

function keyOf(place: Place): string {
  return `${prefixOf(place)}${place.id}`;
}

function prefixOf({ tenant, conversation }: ConversationKey): string {
  return `${tenant}/${conversation}/`;
}
