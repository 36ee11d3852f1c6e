import type { Clock } from '../../base/clock.ts';
import { slicesOf } from '../../base/slices.ts';
import type { ConversationKey, LogPage, Store } from '../../store/store.ts';
import type { PageSource } from './read-pages.ts';
import type { RecentEvents } from './recent-events.ts';

/** Most events that a page takes from memory. Beyond it the store is read, which frees the event loop. */
const MOST_RECENT = 500;

/** Pages of logs, from memory or from the store. */
export function createLogPages(
  store: Pick<Store, 'readPage' | 'readById'>,
  recent: RecentEvents,
  clock: Pick<Clock, 'monotonic' | 'sleep'>,
): PageSource & Pick<RecentEvents, 'trim' | 'forget'> & { stored: PageSource } {
  const shelf = createPageShelf(clock);

  /** Another process may have deleted the conversation, and it may have begun again with the same ids. */
  async function isStill(log: ConversationKey, { events }: LogPage): Promise<boolean> {
    const last = events.at(-1)!;
    const there = await store.readById(log, last.id);
    return there?.seq === last.seq && there.at === last.at;
  }

  const stored: PageSource = {
    async readPage(log, range) {
      if (range.upTo !== undefined) return store.readPage(log, range);
      const shelved = shelf.find(log, range.after);
      if (shelved && (await isStill(log, shelved))) {
        await slicesOf(clock).next();
        return shelved;
      }
      const page = await store.readPage(log, range);
      shelf.put(log, range.after, page);
      return page;
    },
  };
  return {
    stored,
    async readPage(log, range) {
      const known = range.upTo === undefined ? recent.after(log, range.after) : null;
      if (known === null || known.length === 0 || known.length > MOST_RECENT)
        return stored.readPage(log, range);
      return { events: known, isLast: true };
    },
    trim(before) {
      recent.trim(before);
      shelf.trim();
    },
    forget(log) {
      recent.forget(log);
      shelf.clear();
    },
  };
}

/** With pages of at most 512 KiB, 32 MiB. */
const MOST_PAGES = 64;
/** As long as a first turn takes, ms. */
const KEPT_MS = 5_000;

/**
 * The pages of one log that were read a moment ago: who may answer, its tasks and what an agent sees are folds of the whole log,
 * and the first message in a process begins all three.
 */
function createPageShelf(clock: Pick<Clock, 'monotonic'>) {
  let key = '';
  let until = 0;
  const pages = new Map<number, LogPage>();
  const keyOf = ({ tenant, conversation }: ConversationKey) => `${tenant}/${conversation}`;

  function trim(): void {
    if (clock.monotonic() > until) pages.clear();
  }

  return {
    trim,
    find(log: ConversationKey, after: number): LogPage | null {
      trim();
      return pages.size > 0 && keyOf(log) === key ? (pages.get(after) ?? null) : null;
    },
    put(log: ConversationKey, after: number, page: LogPage): void {
      // The last page grows with the log.
      if (page.isLast) return;
      if (keyOf(log) !== key || pages.size >= MOST_PAGES) pages.clear();
      key = keyOf(log);
      until = clock.monotonic() + KEPT_MS;
      pages.set(after, page);
    },
    clear: () => pages.clear(),
  };
}
