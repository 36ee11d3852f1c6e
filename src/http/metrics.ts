import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type Counters, type Levels, type Metrics, TENANTS_SHOWN, type Timers } from '../events/metrics.ts';
import type { Troupe } from '../library/troupe.ts';
import { REFUSALS_COUNTED } from './refusal.ts';
import { CompactionReason, CompactionStrategy, DEFAULT_TENANT } from '../events/index.ts';
import type { Clock } from '../base/clock.ts';

/** Metrics of this process, and their text in the Prometheus format. */
export interface ProcessMetrics extends Metrics {
  /** Media type of `text`. */
  readonly contentType: string;
  /** All of it, as Prometheus reads it. */
  text(troupe: Services): Promise<string>;
}

/** What is asked when the metrics are read. */
type Services = Pick<Troupe, 'health'> & { queues(): Promise<object> };

/** Longest wait for a service: one that does not answer must not delay the other metrics. */
const SERVICE_MS = 2_000;

export function createMetrics({ version }: { version: string }): ProcessMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  new Gauge({ name: 'troupe_build_info', help: 'Always 1', labelNames: ['version', 'node'], registers }).set(
    { version, node: process.versions.node },
    1,
  );
  const counters = mapValues(COUNTERS, (name, { help, labels, zero = [] }) => {
    const counter = new Counter({ name: `troupe_${name}_total`, help, labelNames: labels, registers });
    for (const series of zero) counter.inc({ ...series }, 0);
    return counter;
  });
  const timers = mapValues(
    TIMERS,
    (name, { help, labels, buckets }) =>
      new Histogram({ name: `troupe_${name}_seconds`, help, labelNames: labels, buckets, registers }),
  );
  const levels = mapValues(LEVELS, (name, help) => new Gauge({ name: `troupe_${name}`, help, registers }));
  const depth = new Gauge({
    name: 'troupe_queue_wakes',
    help: 'Wakes in the queue, over all processes',
    labelNames: ['state'],
    registers,
  });
  const up = new Gauge({
    name: 'troupe_service_up',
    help: '1 if this process reaches the service',
    labelNames: ['service'],
    registers,
  });

  const tenants = new Set<string>();
  function shown<L extends object>(labels: L): L {
    if (!('tenant' in labels) || typeof labels.tenant !== 'string') return { ...labels };
    if (tenants.size < TENANTS_SHOWN) tenants.add(labels.tenant);
    return tenants.has(labels.tenant) ? { ...labels } : { ...labels, tenant: 'other' };
  }

  async function ask(troupe: Services): Promise<void> {
    const [queues, health] = await Promise.all([
      within(SERVICE_MS, troupe.queues()),
      within(SERVICE_MS, troupe.health()),
    ]);
    // A missing value is better than an outdated one.
    depth.reset();
    for (const [state, wakes] of Object.entries(queues ?? {})) {
      if (typeof wakes === 'number') depth.set({ state }, wakes);
    }
    up.set({ service: 'store' }, health?.store === 'ok' ? 1 : 0);
    up.set({ service: 'queue' }, health?.queue === 'ok' ? 1 : 0);
  }

  return {
    count(name, labels, by = 1) {
      // Counting 0 creates the series: a ratio of 0 differs from an unknown one.
      if (by >= 0) counters[name].inc(shown(labels), by);
    },
    time(name, labels, ms) {
      // Wall clocks of two machines may disagree, so negative times count as 0.
      if (!Number.isNaN(ms)) timers[name].observe({ ...labels }, Math.max(0, ms) / 1_000);
    },
    change(name, by) {
      levels[name].inc(by);
    },
    contentType: registry.contentType,
    async text(troupe) {
      await ask(troupe);
      return await registry.metrics();
    },
  };
}

function mapValues<K extends string, V, R>(
  source: { [N in K]: V },
  change: (name: K, value: V) => R,
): Record<K, R> {
  const entries = Object.entries(source) as [K, V][];
  return Object.fromEntries(entries.map(([name, value]) => [name, change(name, value)])) as Record<K, R>;
}

const REASONS = CompactionReason.options;
const COMPACTION_SERIES = CompactionStrategy.options.flatMap((strategy) =>
  REASONS.map((reason) => ({ strategy, reason })),
);

interface CounterShape<N extends keyof Counters> {
  help: string;
  labels: readonly (keyof Counters[N] & string)[];
  /** Series shown as 0 from the start: an alert on an increase misses the first value of a new series. */
  zero?: readonly Counters[N][];
}

export const COUNTERS: { [N in keyof Counters]: CounterShape<N> } = {
  events_appended: {
    help: 'Events written to the log',
    labels: ['tenant'],
    zero: [{ tenant: DEFAULT_TENANT }],
  },
  append_retries: { help: 'Appends retried because another writer took the seq', labels: [] },
  turns: {
    help: 'Turns that ended',
    labels: ['tenant', 'outcome'],
    zero: [
      { tenant: DEFAULT_TENANT, outcome: 'done' },
      { tenant: DEFAULT_TENANT, outcome: 'failed' },
      { tenant: DEFAULT_TENANT, outcome: 'aborted' },
    ],
  },
  model_calls: { help: 'Model calls by outcome', labels: ['tenant', 'provider', 'outcome'] },
  model_retries: { help: 'Retried model calls by error code', labels: ['provider', 'code'] },
  cost_usd: { help: 'Cost in US dollars at list prices', labels: ['tenant', 'provider'] },
  unpriced_calls: {
    help: 'Model calls without a known price, not counted in the cost',
    labels: ['provider'],
  },
  tokens: { help: 'Tokens reported by providers', labels: ['tenant', 'provider', 'kind'] },
  tool_calls: {
    help: 'Tool calls by outcome',
    labels: ['tenant', 'outcome'],
    zero: [
      { tenant: DEFAULT_TENANT, outcome: 'done' },
      { tenant: DEFAULT_TENANT, outcome: 'failed' },
      { tenant: DEFAULT_TENANT, outcome: 'lost' },
      { tenant: DEFAULT_TENANT, outcome: 'waiting' },
    ],
  },
  compactions: { help: 'Compactions of prompts', labels: ['strategy', 'reason'], zero: COMPACTION_SERIES },
  compaction_saved_tokens: {
    help: 'Tokens that compactions removed, by local count',
    labels: ['strategy', 'reason'],
    zero: COMPACTION_SERIES,
  },
  compactions_failed: {
    help: 'Compactions that failed',
    labels: ['reason'],
    zero: REASONS.map((reason) => ({ reason })),
  },
  posts_too_late: { help: 'Task ends that came after the task had already ended', labels: ['kind'] },
  guards: { help: 'Stops by guards', labels: ['tenant', 'guard'] },
  store_errors: {
    help: 'Operations that the store refused or did not answer',
    labels: ['code'],
    zero: [{ code: 'store_unavailable' }, { code: 'store_corrupt' }],
  },
  damaged_events: {
    help: 'Stored events whose content does not match its hash, or that cannot be read; each once per process',
    labels: ['damage'],
    zero: [{ damage: 'altered' }, { damage: 'unreadable' }],
  },
  queue_errors: {
    help: 'Wakes that the queue did not accept; sweeps recover them',
    labels: ['code'],
    zero: [{ code: 'queue_unavailable' }],
  },
  wakes_ignored: { help: 'Jobs in the queue that are not well-formed wakes', labels: [] },
  queue_mended: {
    help: 'Repairs of the queue: damaged keys, and resets of the whole queue',
    labels: ['part'],
    zero: [{ part: 'queue' }, { part: 'key' }],
  },
  leases_lost: { help: 'Leases that another process took over', labels: [] },
  sweeps: { help: 'Sweeps by this process', labels: [] },
  sweep_found: { help: 'Actors with pending work that sweeps woke', labels: [] },
  budget_refused: {
    help: 'Model calls refused by a budget',
    labels: ['tenant', 'scope'],
    zero: [
      { tenant: DEFAULT_TENANT, scope: 'tenant' },
      { tenant: DEFAULT_TENANT, scope: 'conversation' },
      { tenant: DEFAULT_TENANT, scope: 'agent' },
    ],
  },
  budget_retries: {
    help: 'Reservations and settlements retried after a conflicting write',
    labels: [],
  },
  webhook_deliveries: {
    help: 'Webhook delivery attempts by outcome',
    labels: ['tenant', 'outcome'],
  },
  nostr_received: { help: 'Events received from relays', labels: [] },
  nostr_refused: { help: 'Rejected events and frames from relays', labels: ['reason'] },
  requests_refused: {
    help: 'Requests refused by access rules or rate limits',
    labels: ['code'],
    zero: REFUSALS_COUNTED.map((code) => ({ code })),
  },
  nostr_published: {
    help: 'Attempts to publish an event to a relay, by outcome',
    labels: ['outcome'],
    zero: [{ outcome: 'published' }, { outcome: 'refused' }, { outcome: 'failed' }],
  },
  actors_failed: {
    help: 'Actors that failed and wait to be resumed',
    labels: ['tenant', 'code'],
    zero: [
      { tenant: DEFAULT_TENANT, code: 'actor_corrupt' },
      { tenant: DEFAULT_TENANT, code: 'store_corrupt' },
      { tenant: DEFAULT_TENANT, code: 'event_conflict' },
      { tenant: DEFAULT_TENANT, code: 'event_invalid' },
    ],
  },
};

export const TIMERS: { [N in keyof Timers]: { help: string; labels: string[]; buckets: number[] } } = {
  wake_wait: {
    help: 'Time from a wake to the start of its work',
    labels: [],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
  activation: {
    help: 'Work of a wake, from lease to release',
    labels: ['outcome'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
  },
  model_call: {
    help: 'Model calls, from request to last word',
    labels: ['provider'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300],
  },
  model_first_token: {
    help: 'Model calls, from request to first word',
    labels: ['provider'],
    buckets: [0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 20, 40, 60],
  },
  tool_call: {
    help: 'Tool calls, from call to result',
    labels: ['outcome'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
  },
  turn: {
    help: 'Turns, from start to commit',
    labels: ['outcome'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 900],
  },
  turn_part: {
    help: 'Time of turns by part; a turn counts only the parts that it had',
    labels: ['part'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300],
  },
};

const LEVELS: { [N in keyof Levels]: string } = {
  leases_held: 'Actors leased by this process',
};

/** Whether this process should get work. `store` and `queue` are `ok` or describe the problem. */
export interface Readiness {
  status: 'ok' | 'unavailable' | 'stopping';
  store: string;
  queue: string;
}

interface ReadinessOptions {
  clock: Clock;
  /** Aborted when the process is about to end. */
  signal?: AbortSignal | undefined;
}

const ANSWER_MS = 3_000;
/** The endpoint is public and unlimited, so the services are checked at most once in this time. */
const KEPT_MS = 1_000;
const SILENT = { store: 'no answer in time', queue: 'no answer in time' };

export function createReadiness(
  troupe: Pick<Troupe, 'health'>,
  { clock, signal }: ReadinessOptions,
): () => Promise<Readiness> {
  let asked: { at: number; health: ReturnType<typeof ask> } | null = null;

  async function ask(): Promise<{ store: string; queue: string }> {
    return (await within(ANSWER_MS, troupe.health())) ?? SILENT;
  }

  return async function readiness() {
    const now = clock.monotonic();
    if (!asked || now - asked.at >= KEPT_MS) asked = { at: now, health: ask() };
    const { store, queue } = await asked.health;
    const isReachable = store === 'ok' && queue === 'ok';
    // Read last: the process may have begun to stop meanwhile.
    const status = signal?.aborted ? 'stopping' : isReachable ? 'ok' : 'unavailable';
    return { status, store, queue };
  };
}

/** The value of `promise`; null if it rejects or takes longer than `ms`. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  try {
    return await Promise.race([promise.catch(() => null), late]);
  } finally {
    clearTimeout(timer);
  }
}
