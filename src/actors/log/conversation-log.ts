import type { Clock } from '../../clock.ts';
import { toTroupeError, TroupeError } from '../../errors.ts';
import { eventText } from '../../context/index.ts';
import {
  type ActorAddress,
  type Event,
  type EventDraft,
  isRuntimeId,
  type TenantId,
} from '../../events/index.ts';
import type { Broadcast } from '../../queue/broadcast.ts';
import type { Metrics } from '../../metrics.ts';
import type { Router } from '../../queue/router.ts';
import type { Appended, Entry, ConversationKey, Store } from '../../store/store.ts';
import { ownPlace } from './own-id.ts';
import { createRecentEvents } from './recent-events.ts';
import type { Redaction } from './redaction.ts';
import { slicesOf } from '../../slices.ts';
import { createRemoteEvents } from './remote-events.ts';

/**
 * The one way into the log: redact, count tokens, append, tell watchers, wake the addressed agents. In this order: a wake
 * before its event would be looked at too early and lost.
 */
export interface ConversationLog {
  /** Appends in order and wakes whoever is addressed. Safe to repeat with the same drafts. */
  append(log: ConversationKey, drafts: readonly EventDraft[], options?: AppendOptions): Promise<Appended[]>;
  /** Oldest first, at most `limit`; the newest come from memory, without a look into the store. */
  read(
    log: ConversationKey,
    range: { after: number; upTo?: number; limit: number },
  ): Promise<readonly Event[]>;
  /** As the store's: a page for whoever folds all of it. */
  readPage(
    log: ConversationKey,
    range: { after: number; upTo?: number },
  ): Promise<{ events: readonly Event[]; isLast: boolean }>;
  onAppended(listener: AppendListener): () => void;
  /** Hears of every agent that this process has appended something to, before it is woken: one may have to stop first. */
  onAddressed(listener: AddressListener): () => void;
  /** Forgets the recent events of conversations that have been quiet since `before` (ms). */
  trim(before: number): void;
  /** Forgets the recent events of a conversation that is deleted. */
  forget(log: ConversationKey): void;
  /** Hears no more of other processes. */
  close(): void;
}

/** Taken from memory at once; of more a page is read, and the loop given back. */
const MOST_RECENT = 500;
/** From here on a text takes milliseconds to count and to write, and waits for its turn beside other long work. */
const LONG_TEXT = 32_768;

export type AppendListener = (tenant: TenantId, event: Event) => void;

export type AddressListener = (address: ActorAddress, event: Event) => Promise<void>;

export interface AppendOptions {
  /** When it happened, ms; now by default. */
  at?: (index: number) => number;
  /** Whether addressed agents are woken. Default true; imports do not wake. */
  wake?: boolean;
  /** Whether the runtime writes under a spare where its id is somebody else's. Default true; copies keep their ids. */
  spares?: boolean;
}

export function createConversationLog(deps: {
  store: Store;
  router: Router;
  broadcast: Broadcast;
  clock: Clock;
  countTokens: (text: string) => number;
  metrics: Metrics;
  redaction?: Redaction | undefined;
  onWarning: (error: unknown, where: string) => void;
}): ConversationLog {
  const { store, router, broadcast, clock, countTokens, metrics, redaction, onWarning } = deps;
  const listeners = new Set<AppendListener>();
  const addressed = new Set<AddressListener>();
  const recent = createRecentEvents();
  const remote = createRemoteEvents({ store, tell, isWatched: () => listeners.size > 0, onWarning });
  const unsubscribe = broadcast.subscribe((notice) => {
    if (notice.type === 'appended') void remote.hear(notice);
  });

  function tell(log: ConversationKey, event: Event): void {
    for (const listener of listeners) {
      try {
        listener(log.tenant, event);
      } catch (error) {
        onWarning(error, 'append listener');
      }
    }
  }

  /** Clients bring no ids of the runtime, so what is under one and not the runtime's is from elsewhere: it is passed over. */
  async function appendOwn(
    log: ConversationKey,
    entries: readonly Entry[],
    spares: boolean,
  ): Promise<Appended[]> {
    try {
      return await store.append(log, entries);
    } catch (error) {
      const id =
        spares && error instanceof TroupeError && error.code === 'event_conflict' && error.data['id'];
      const taken = entries.findIndex(({ draft }) => draft.id === id && isRuntimeId(draft.id));
      const entry = entries[taken];
      if (!entry) throw error;
      const place = await ownPlace(store, log, entry.draft);
      if (place.id === id) throw error;
      onWarning(`${id} is not the runtime's: its event is ${place.id}`, `log of ${log.conversation}`);
      return appendOwn(
        log,
        entries.with(taken, { ...entry, draft: { ...entry.draft, id: place.id } }),
        spares,
      );
    }
  }

  function announce({ tenant, conversation }: ConversationKey, appended: readonly Appended[]): void {
    const seqs = appended.flatMap(({ kind, event }) => (kind === 'appended' ? [event.seq] : []));
    const [first] = seqs;
    const head = seqs.at(-1);
    if (first === undefined || head === undefined) return;
    metrics.count('events_appended', { tenant }, seqs.length);
    broadcast.publish({ type: 'appended', tenant, conversation, after: first - 1, head });
  }

  async function wakeAddressed(log: ConversationKey, event: Event): Promise<void> {
    for (const agent of event.to) {
      const address: ActorAddress = { tenant: log.tenant, conversation: log.conversation, agent };
      for (const listener of addressed) {
        await listener(address, event).catch((error: unknown) => onWarning(error, 'address listener'));
      }
      // A wake that is lost here is found by the sweeper.
      await router.wake(address).catch((error: unknown) => {
        const { code } = toTroupeError(error);
        metrics.count('queue_errors', { code });
        // The connection tells once that it is away; not every event has to.
        if (code !== 'queue_unavailable') onWarning(error, 'wake');
      });
    }
  }

  return {
    async append(log, drafts, { at = () => clock.now(), wake = true, spares = true } = {}) {
      const entries: Entry[] = [];
      let chars = 0;
      for (const [index, given] of drafts.entries()) {
        const { length } = eventText(given);
        if (length > LONG_TEXT) await slicesOf(clock).next();
        chars += length;
        const draft = redaction?.draft(given) ?? given;
        entries.push({ draft, at: at(index), tokens: countTokens(eventText(draft)) });
      }
      if (chars > LONG_TEXT) await slicesOf(clock).next();
      const appended = await appendOwn(log, entries, spares);
      for (const { kind, event } of appended) {
        if (kind === 'appended') {
          recent.add(log, event, clock.now());
          remote.own(log, event);
          tell(log, event);
        }
      }
      announce(log, appended);
      // Only now: whoever appends while this waits would be heard before the rest of what was appended here.
      for (const { event } of appended) if (wake && event.to.length > 0) await wakeAddressed(log, event);
      return appended;
    },
    async read(log, range) {
      const known = range.upTo === undefined ? recent.after(log, range.after) : null;
      // "Nothing new" is never taken from memory: others append too, and so did we where the answer was lost.
      if (known === null || known.length === 0) return store.read(log, range);
      return known.length > range.limit ? known.slice(0, range.limit) : known;
    },
    async readPage(log, range) {
      const known = range.upTo === undefined ? recent.after(log, range.after) : null;
      if (known === null || known.length === 0 || known.length > MOST_RECENT)
        return store.readPage(log, range);
      return { events: known, isLast: true };
    },
    trim: (before) => recent.trim(before),
    forget: (log) => recent.forget(log),
    onAppended(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onAddressed(listener) {
      addressed.add(listener);
      return () => addressed.delete(listener);
    },
    close: unsubscribe,
  };
}
