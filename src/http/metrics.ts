import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type Metrics, TENANTS_SHOWN } from '../metrics.ts';
import type { Troupe } from '../troupe.ts';
import { COUNTERS, LEVELS, TIMERS } from './metric-shapes.ts';
import { within } from './within.ts';

/** The numbers of this process, and their page in Prometheus' text format. */
export interface ProcessMetrics extends Metrics {
  readonly contentType: string;
  text(troupe: Pick<Troupe, 'queues' | 'health'>): Promise<string>;
}

/** A service that does not answer must not keep the other numbers from their reader. */
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

  async function ask(troupe: Pick<Troupe, 'queues' | 'health'>): Promise<void> {
    const [queues, health] = await Promise.all([
      within(SERVICE_MS, troupe.queues()),
      within(SERVICE_MS, troupe.health()),
    ]);
    // Rather no number than an old one.
    depth.reset();
    for (const [state, wakes] of Object.entries(queues ?? {})) {
      if (typeof wakes === 'number') depth.set({ state }, wakes);
    }
    up.set({ service: 'store' }, health?.store === 'ok' ? 1 : 0);
    up.set({ service: 'queue' }, health?.queue === 'ok' ? 1 : 0);
  }

  return {
    count(name, labels, by = 1) {
      // Nothing counted makes a series too: a ratio of 0 is told from one that is not known.
      if (by >= 0) counters[name].inc(shown(labels), by);
    },
    time(name, labels, ms) {
      // Wall clocks of two machines may disagree, and what came before it was asked for took no time.
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
