import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { METRICS, type Metrics, type Readings, TENANTS_SHOWN } from '../events/metrics.ts';
import type { Troupe } from '../library/troupe.ts';
import type { Clock } from '../base/clock.ts';

/** Metrics of this process, in the Prometheus text format. */
export interface ProcessMetrics extends Metrics {
  /** Media type of `text`. */
  readonly contentType: string;
  /** All metrics, as Prometheus reads them. */
  text(troupe: Services): Promise<string>;
}

/** The services that are asked when the metrics are read. */
type Services = Pick<Troupe, 'health'> & { queues(): Promise<object> };

/** Longest wait for a service, ms: one that does not answer must not delay the other metrics. */
const SERVICE_MS = 2_000;

export function createMetrics({ version }: { version: string }): ProcessMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const counters = new Map<string, Counter>();
  const timers = new Map<string, Histogram>();
  const gauges = new Map<string, Gauge>();
  for (const [key, metric] of Object.entries(METRICS)) {
    const settings = {
      name: seriesOf(key, metric.type),
      // `/metrics` is not Markdown.
      help: metric.means.replaceAll('`', ''),
      labelNames: Object.keys(metric.labels),
      registers,
    };
    if (metric.type === 'counter') {
      const counter = new Counter(settings);
      for (const series of metric.zero) counter.inc(series, 0);
      counters.set(key, counter);
    } else if (metric.type === 'timer') {
      timers.set(key, new Histogram({ ...settings, buckets: [...metric.buckets] }));
    } else gauges.set(key, new Gauge(settings));
  }
  const read = (key: keyof Readings) => gauges.get(key) as Gauge;
  read('build_info').set({ version, node: process.versions.node }, 1);

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
    read('queue_wakes').reset();
    for (const [state, wakes] of Object.entries(queues ?? {})) {
      if (typeof wakes === 'number') read('queue_wakes').set({ state }, wakes);
    }
    read('service_up').set({ service: 'store' }, health?.store === 'ok' ? 1 : 0);
    read('service_up').set({ service: 'queue' }, health?.queue === 'ok' ? 1 : 0);
  }

  return {
    count(name, labels, by = 1) {
      // Counting 0 creates the series: a ratio of 0 differs from an unknown one.
      if (by >= 0) counters.get(name)?.inc(shown(labels), by);
    },
    time(name, labels, ms) {
      // Wall clocks of two machines may disagree, so negative times count as 0.
      if (!Number.isNaN(ms)) timers.get(name)?.observe({ ...labels }, Math.max(0, ms) / 1_000);
    },
    change(name, by) {
      gauges.get(name)?.inc(by);
    },
    contentType: registry.contentType,
    async text(troupe) {
      await ask(troupe);
      return await registry.metrics();
    },
  };
}

type Type = (typeof METRICS)[keyof typeof METRICS]['type'];

/** The Prometheus name of a metric, with the suffix of its type. */
export function seriesOf(key: string, type: Type): string {
  if (type === 'counter') return `troupe_${key}_total`;
  return type === 'timer' ? `troupe_${key}_seconds` : `troupe_${key}`;
}

/** Whether this process should get work. `store` and `queue` are `ok`, or describe the problem. */
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
/** The endpoint is public and unlimited, so the services are checked at most once in this time, in ms. */
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
    // Read last: the process may have begun to stop in the meantime.
    const status = signal?.aborted ? 'stopping' : isReachable ? 'ok' : 'unavailable';
    return { status, store, queue };
  };
}

/** The value of `promise`; null if it rejects or takes longer than `ms`. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
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
