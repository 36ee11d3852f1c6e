import type { EntryKey, StoreDriver } from './driver.ts';
import type { ConversationKey, Store } from './store.ts';

type DerivedMethods = Pick<Store, 'putDerived' | 'readDerived' | 'derivedKeys' | 'removeDerived'>;

/** Keys of one request. */
const SLICE_KEYS = 1_000;
/** After every ASCII character of a key. */
const LAST_KEY = '\x7f';

export function createDerivedMethods(driver: StoreDriver): DerivedMethods {
  function entryOf({ tenant, conversation }: ConversationKey, key: string): EntryKey {
    return { tenant, namespace: 'derived', key: `${conversation}/${key}` };
  }

  return {
    async putDerived(log, key, text, at) {
      await driver.putOnce(entryOf(log, key), text, at);
    },
    readDerived: (log, keys) => driver.readEntries(keys.map((key) => entryOf(log, key))),
    async derivedKeys(log, prefix) {
      const { key: start, ...place } = entryOf(log, prefix);
      const found: string[] = [];
      for (let after = start; ;) {
        const page = await driver.entryKeys({
          ...place,
          after,
          before: `${start}${LAST_KEY}`,
          limit: SLICE_KEYS,
        });
        found.push(...page.map((key) => key.slice(log.conversation.length + 1)));
        after = page.at(-1) ?? after;
        if (page.length < SLICE_KEYS) return found;
      }
    },
    removeDerived: (log, keys) => driver.removeEntries(keys.map((key) => entryOf(log, key))),
  };
}
