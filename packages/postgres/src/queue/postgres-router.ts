import {
  type ActorAddress,
  assertStartable,
  type Clock,
  createOutage,
  limitWarnings,
  MOST_WAITING,
  type Router,
  type RouterObserver,
  type Service,
  type StorePace,
  type Warn,
  addressKey,
  type TenantId,
  TroupeError,
} from '../troupe.ts';
import type { PostgresListener } from './postgres-broadcast.ts';
import { type QueueDatabase, ensureTables, isTableMissing, createBatches } from './queue-database.ts';
import { WakeServer, type WakeServerDeps } from './wake-server.ts';
import { WakeTable } from './wake-table.ts';

export interface PostgresRouterOptions {
  /** Its tables must exist. Shared with others, so `close` leaves it open. */
  database: QueueDatabase;
  /** Receives notifications of new wakes. Shared too. */
  listener: PostgresListener;
  channel: string;
  /** Identifies this process. */
  process: string;
  clock: Clock;
  onWarning: (error: unknown, where: string) => void;
  /** 0 <= n < 1. */
  random?: () => number;
  observer?: RouterObserver;
  /** A wake that was not renewed for this time, ms, is given to another process. */
  lockMs?: number;
  /** Interval of reading the table without a notification, ms: while notifications arrive, and while they do not. */
  pollMs?: number;
  deafPollMs?: number;
  /** Maximum waiting actors per tenant. */
  mostWaiting?: number | undefined;
  /** Limits the concurrency to what the store can serve. Default: unlimited. */
  pace?: StorePace | undefined;
}

export interface PostgresRouter extends Router {
  /** To be called when rows of the queue may have been lost. */
  lost(): void;
  /** To be called with the error of a failed statement. If a table is missing, it is created again. */
  suspect(error: unknown): void;
}

const POLL_MS = 1_000;
const DEAF_POLL_MS = 200;
const UNPACED: StorePace = { took: () => undefined, limit: () => Number.MAX_SAFE_INTEGER };

/**
 * The router for many processes over one PostgreSQL. A wake is a row: `wake-table.ts` has its statements, `wake-server.ts`
 * serves it. A notification makes workers read the table. Notifications are hints, like the wakes themselves: without them each
 * worker reads the table at an interval. A lost table is created again, and the store knows which actors have work.
 */
export function createPostgresRouter(options: PostgresRouterOptions): PostgresRouter {
  const { database, listener, channel, process, clock, observer = {}, mostWaiting = MOST_WAITING } = options;
  const warn = limitWarnings(options.onWarning, clock);
  const notify = notifier(warn);
  const table = new WakeTable(database, channel);
  const adder = createWakeAdder({ table, process, mostWaiting, clock });
  const repair = createTableRepair({
    database,
    warn,
    onMended() {
      notify(() => observer.onMended?.('queue'));
      notify(onLost);
    },
  });
  const reach = <T>(run: () => Promise<T>) => repair.reach(run);
  let started: Service | null = null;
  let server: WakeServer | null = null;
  let onLost: () => void = () => {};
  let closed: Promise<void> | null = null;
  let isClosed = false;

  async function wake(address: ActorAddress, delayMs: number): Promise<void> {
    if (delayMs > 0) await table.addTimed(address, delayMs, `${process} ${delayMs}`);
    else await adder.add(address);
    server?.look(delayMs);
  }

  async function shutDown(): Promise<void> {
    await server?.close();
    isClosed = true;
    await adder.idle();
  }

  listener.on(channel, (payload) => {
    const [from, delayMs] = payload.split(' ');
    // For wakes of this process the server was called already.
    if (from !== process) server?.look(Number(delayMs ?? 0));
  });

  return {
    async wake(address, { delayMs = 0 } = {}) {
      // Handlers that end during `close` may still wake actors, which other processes then serve.
      if (!isClosed) await reach(() => wake(address, Math.ceil(delayMs)));
    },
    start(handler, { onLost: lost = () => {}, ...rest }) {
      assertStartable(started, rest.concurrency);
      started = { handler, ...rest };
      onLost = lost;
      if (!closed)
        server = serve(options, { service: started, table, warn, notify, onFailed: repair.suspect });
    },
    depth: () => reach(() => table.depth()),
    backlog: (tenant) => reach(() => table.backlog(tenant, mostWaiting)),
    waiting: (limit, tenant) => reach(() => table.waiting(limit, tenant ?? null)),
    check: () => reach(async () => void (await table.needs())),
    close: () => (closed ??= shutDown()),
    lost: () => notify(onLost),
    suspect: repair.suspect,
  };
}

type Parts = Pick<WakeServerDeps, 'service' | 'table' | 'warn' | 'notify' | 'onFailed'>;

function serve(options: PostgresRouterOptions, parts: Parts): WakeServer {
  const { listener, process: holder, clock, random = Math.random, observer = {} } = options;
  const { lockMs = 30_000, pollMs = POLL_MS, deafPollMs = DEAF_POLL_MS, pace = UNPACED } = options;
  const outage = createOutage(options.onWarning, {
    where: 'queue',
    away: 'PostgreSQL is unavailable: no wakes are taken until it is back; nothing is lost',
    back: 'PostgreSQL is back: wakes are taken again',
  });
  return new WakeServer({
    ...parts,
    holder,
    clock,
    random,
    observer,
    outage,
    pace,
    lockMs,
    pollMs: () => (listener.isHearing() ? pollMs : deafPollMs),
  });
}

/** Calls callbacks of the application. What one throws becomes a warning, because it must not stop the router. */
function notifier(warn: Warn) {
  return (call: () => void): void => {
    try {
      call();
    } catch (error) {
      warn(error, 'queue');
    }
  };
}

const MOST_ADDED = 256;
const RECOUNT_MS = 1_000;
/** The count is read again after this process has added one `PART`th of the bound. */
const PART = 16;
const MAX_TENANTS = 10_000;

interface WakeAdderDeps {
  table: WakeTable;
  /** Id of this process, which notifications of its wakes contain. */
  process: string;
  /** Maximum waiting actors per tenant. */
  mostWaiting: number;
  clock: Pick<Clock, 'monotonic'>;
}

/** Adds wakes. Those that are requested while a statement runs are added together by the next one. */
function createWakeAdder({ table, process, mostWaiting, clock }: WakeAdderDeps) {
  const count = (tenant: TenantId) => table.backlog(tenant, mostWaiting);
  const bound = createBacklogBound({ most: mostWaiting, count, clock });
  return createBatches(async (addresses: ActorAddress[]): Promise<void> => {
    const distinct = new Map(addresses.map((address) => [addressKey(address), address]));
    const admitted: ActorAddress[] = [];
    for (const address of distinct.values()) if (await bound.admits(address.tenant)) admitted.push(address);
    if (admitted.length > 0) await table.add(admitted, process);
  }, MOST_ADDED);
}

interface Size {
  counted: number;
  at: number;
  added: number;
}

/**
 * Bounds the waiting actors of a tenant (R8). A count is an index scan, so it is read once for many wakes. Processes that add
 * at the same time may therefore exceed the bound by a part of it.
 */
function createBacklogBound(options: {
  most: number;
  count: (tenant: TenantId) => Promise<number>;
  clock: Pick<Clock, 'monotonic'>;
}) {
  const { most, count, clock } = options;
  const sizes = new Map<TenantId, Size>();
  return {
    /** Whether one more may wait. */
    async admits(tenant: TenantId): Promise<boolean> {
      if (sizes.size >= MAX_TENANTS) sizes.clear();
      const size = sizes.get(tenant) ?? { counted: 0, at: Number.NEGATIVE_INFINITY, added: 0 };
      sizes.set(tenant, size);
      size.added += 1;
      const isDue = size.added >= most / PART || size.counted + size.added > most;
      if (isDue && clock.monotonic() - size.at >= RECOUNT_MS) {
        size.at = clock.monotonic();
        size.counted = await count(tenant);
        size.added = 1;
      }
      return size.counted + size.added <= most;
    },
  };
}

interface TableRepairDeps {
  database: QueueDatabase;
  warn: Warn;
  /** Called when missing tables were created again. */
  onMended: () => void;
}

/** Creates missing tables again, for example after a restore without them. */
function createTableRepair({ database, warn, onMended }: TableRepairDeps) {
  let mending: Promise<void> | null = null;

  async function mend(): Promise<void> {
    try {
      await ensureTables(database);
      warn('the tables of the queue were missing and are created again; work is found in the log', 'queue');
      onMended();
    } catch (error) {
      warn(error, 'queue');
    }
  }

  /** Checks whether a statement failed because a table is missing. */
  function suspect(error: unknown): void {
    if (isTableMissing(error)) mending ??= mend().finally(() => (mending = null));
  }

  return {
    suspect,
    /** Runs statements; a failure becomes `queue_unavailable`. */
    async reach<T>(run: () => Promise<T>): Promise<T> {
      try {
        return await run();
      } catch (error) {
        suspect(error);
        const why = error instanceof Error ? error.message : String(error);
        const message = `the queue in PostgreSQL does not answer: ${why}`;
        throw new TroupeError('queue_unavailable', message, {}, { cause: error });
      }
    },
  };
}
