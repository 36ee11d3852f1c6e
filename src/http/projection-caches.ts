import type { Context } from 'hono';
import { LRUCache } from 'lru-cache';
import { DEFAULT_TENANT, type Event, type TenantId, isErasure } from '../events/index.ts';
import type { Troupe } from '../library/troupe.ts';
import { callerOf } from './caller.ts';
import { TroupeError } from '../base/errors.ts';
import type { Projection } from '../library/projection/model.ts';
import { foldEvents, newProjection } from '../library/projection/projection.ts';

const MAX_TENANTS = 32;

/** Returns the projections that the caller of a request may see. */
export type ProjectionCacheOf = (context: Context) => ProjectionCache;

export function createProjectionCaches(root: Troupe): ProjectionCacheOf {
  const caches = new LRUCache<TenantId, ProjectionCache>({
    max: MAX_TENANTS,
    memoMethod: (tenant) => createProjectionCache(tenant === DEFAULT_TENANT ? root : root.forTenant(tenant)),
  });

  return function cacheOf(context) {
    const { principal, troupe } = callerOf(context);
    const cache = caches.memo(principal.tenant);
    if (principal.conversations === null) return cache;
    // All callers share the projection, so the caller's own troupe checks access.
    const check = (conversation: string) => troupe.events(conversation, { after: 0, limit: 1 });
    return {
      async latest(conversation) {
        await check(conversation);
        return cache.latest(conversation);
      },
      async at(conversation, seq) {
        await check(conversation);
        return cache.at(conversation, seq);
      },
    };
  };
}

/** Projections of conversations for the inspector. Each event is folded once. */
export interface ProjectionCache {
  /** The projection at the head of the log. Concurrent calls share the work. Throws `conversation_unknown`. */
  latest(conversation: string): Promise<Projection>;
  /** The projection after this seq, and the current head of the log. */
  at(conversation: string, seq: number): Promise<{ projection: Projection; head: number }>;
}

const MAX_CONVERSATIONS = 64;
/** Events between checkpoints. A checkpoint shares its unchanged parts with later ones. */
const CHECKPOINT_EVENTS = 2_000;
/** Most checkpoints per conversation; in longer conversations they are further apart. */
const MAX_CHECKPOINTS = 8;
/** Most checkpoints over all conversations. */
const MAX_ALL_CHECKPOINTS = 64;
const PAGE = 1_000;
/** Number of new events after which the projection is stored again. */
const STORED_EVENTS = 1_000;
const READER = 'inspector';

interface Entry {
  latest: Projection;
  /** Id of the last folded event. It differs after a conversation was deleted and created again. */
  lastId: string | null;
  past: Projection[];
  /** Whether the store was asked for a projection. */
  isOpened: boolean;
  /** Seq of the stored projection. */
  stored: number;
  /** The entry began with the stored projection, so `past` lacks what came before. */
  isRestored: boolean;
  interval: number;
  running: Promise<Projection> | null;
  /** Calls during a run share the next run, because this one may have read before their events were written. */
  queued: Promise<Projection> | null;
}

/** Without checkpoints, each process folds a conversation from its first event. */
type Source = Pick<Troupe, 'events'> & Partial<Pick<Troupe, 'checkpoint' | 'saveCheckpoint'>>;

export function createProjectionCache(troupe: Source): ProjectionCache {
  const entries: Entries = new LRUCache({ max: MAX_CONVERSATIONS, memoMethod: newEntry });

  const catchUp = createCatchUp(troupe, entries);

  function run(conversation: string, entry: Entry): Promise<Projection> {
    entry.running = catchUp(conversation, entry)
      .catch((error: unknown) => {
        if (error instanceof TroupeError && error.code === 'conversation_unknown')
          entries.delete(conversation);
        throw error;
      })
      .finally(() => {
        entry.running = null;
      });
    return entry.running;
  }

  function latest(conversation: string): Promise<Projection> {
    const entry = entries.memo(conversation);
    if (!entry.running) return run(conversation, entry);
    entry.queued ??= entry.running
      .catch(() => undefined)
      .then(() => {
        entry.queued = null;
        return run(conversation, entry);
      });
    return entry.queued;
  }

  /** Reads the whole log once, for the past that a stored projection lacks. */
  async function readPast(conversation: string): Promise<void> {
    const entry = entries.get(conversation);
    if (!entry?.isRestored) return;
    entries.set(conversation, { ...newEntry(conversation), isOpened: true, stored: entry.stored });
    await latest(conversation);
  }

  return {
    latest,
    async at(conversation, seq) {
      const now = await latest(conversation);
      if (seq >= now.seq) return { projection: now, head: now.seq };
      if (seq < (entries.get(conversation)?.past[0]?.seq ?? Infinity)) await readPast(conversation);
      const start = entries.get(conversation)?.past.findLast((each) => each.seq <= seq);
      let projection = start ?? newProjection(conversation);
      while (projection.seq < seq) {
        const limit = Math.min(PAGE, seq - projection.seq);
        const { events } = await troupe.events(conversation, { after: projection.seq, limit });
        if (events.length === 0) break;
        projection = foldEvents(projection, events);
      }
      return { projection, head: now.seq };
    },
  };
}

type Entries = LRUCache<string, Entry>;

/** Folds the newer events of a conversation, starting from the stored projection if this process has none. */
function createCatchUp(troupe: Source, entries: Entries) {
  /** Begins with the stored projection. The first read sets `lastId`: the store has already compared it with the log. */
  async function open(conversation: string, entry: Entry): Promise<void> {
    if (entry.isOpened) return;
    const found = await troupe.checkpoint?.(conversation, READER);
    entry.isOpened = true;
    if (!found) return;
    entry.latest = found.content as Projection;
    entry.stored = found.seq;
    entry.isRestored = true;
  }

  async function store(conversation: string, entry: Entry): Promise<void> {
    const { latest, stored } = entry;
    if (latest.seq - stored < STORED_EVENTS) return;
    entry.stored = latest.seq;
    await troupe.saveCheckpoint?.(conversation, READER, { seq: latest.seq, content: latest });
  }

  async function catchUp(conversation: string, entry: Entry): Promise<Projection> {
    await open(conversation, entry);
    const latest = await readOn(conversation, entry);
    await store(conversation, entry);
    return latest;
  }

  async function readOn(conversation: string, entry: Entry): Promise<Projection> {
    for (;;) {
      const known = entry.latest.seq;
      // The last known event is read again, to check that it is still the same.
      const after = Math.max(0, known - 1);
      const { events, head } = await troupe.events(conversation, { after, limit: PAGE });
      const isOther = known > 0 && entry.lastId !== null && events[0]?.id !== entry.lastId;
      // Folded events may contain text that has since been erased.
      const isErased = known > 0 && events.some((event) => event.seq > known && isErasure(event));
      if (isOther || isErased) {
        Object.assign(entry, newEntry(conversation), { running: entry.running, isOpened: true });
        continue;
      }
      fold(entry, events, entries);
      if (entry.latest.seq >= head) return entry.latest;
      if (entry.latest.seq > known) continue;
      // The last known event filled a page by itself.
      fold(entry, (await troupe.events(conversation, { after: known, limit: PAGE })).events, entries);
      if (entry.latest.seq === known) return entry.latest;
    }
  }

  return catchUp;
}

function fold(entry: Entry, events: readonly Event[], entries: Entries): void {
  for (let from = 0; from < events.length;) {
    const next = entry.latest.seq - (entry.latest.seq % entry.interval) + entry.interval;
    const end = events.findIndex(({ seq }) => seq >= next);
    const to = end < 0 ? events.length : end + 1;
    entry.latest = foldEvents(entry.latest, events.slice(from, to));
    from = to;
    if (entry.latest.seq === next) keepCheckpoint(entry, entries);
  }
  entry.lastId = events.at(-1)?.id ?? entry.lastId;
}

function keepCheckpoint(entry: Entry, entries: Entries): void {
  entry.past.push(entry.latest);
  if (entry.past.length > MAX_CHECKPOINTS) {
    entry.interval *= 2;
    entry.past = entry.past.filter(({ seq }) => seq % entry.interval === 0);
  }
  let all = 0;
  for (const { past } of entries.values()) all += past.length;
  // The least recently used conversations lose their checkpoints.
  for (const other of [...entries.values()].toReversed()) {
    if (all <= MAX_ALL_CHECKPOINTS) break;
    all -= other.past.length;
    other.past = [];
  }
}

function newEntry(conversation: string): Entry {
  return {
    latest: newProjection(conversation),
    lastId: null,
    past: [],
    isOpened: false,
    stored: 0,
    isRestored: false,
    interval: CHECKPOINT_EVENTS,
    running: null,
    queued: null,
  };
}
