import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Counters, Metrics, Timers } from '../metrics.ts';
import type { Troupe } from '../troupe.ts';
import { within } from './within.ts';

/** The numbers of this process, and their page in Prometheus' text format. */
export interface ProcessMetrics extends Metrics {
  readonly contentType: string;
  text(troupe: Pick<Troupe, 'queues' | 'health'>): Promise<string>;
}

interface CounterShape<N extends keyof Counters> {
  help: string;
  labels: readonly (keyof Counters[N] & string)[];
  /** Shown as 0 from the start: an alert on a rise does not see the first one of a series that was not there. */
  zero?: readonly Counters[N][];
}

const COUNTERS: { [N in keyof Counters]: CounterShape<N> } = {
  events_appended: { help: 'Events written to the log', labels: [] },
  append_retries: { help: 'Appends tried again because another writer had taken the seq', labels: [] },
  turns: {
    help: 'Turns that ended',
    labels: ['outcome'],
    zero: [{ outcome: 'done' }, { outcome: 'failed' }, { outcome: 'aborted' }],
  },
  model_calls: { help: 'Model calls by how they ended', labels: ['provider', 'outcome'] },
  tokens: { help: 'Tokens as providers counted them', labels: ['provider', 'kind'] },
  tool_calls: {
    help: 'Tool calls by how they ended',
    labels: ['outcome'],
    zero: [{ outcome: 'done' }, { outcome: 'failed' }, { outcome: 'lost' }, { outcome: 'waiting' }],
  },
  posts_too_late: { help: 'Ends of tasks that had been ended by somebody else', labels: ['kind'] },
  guards: { help: 'What was stopped, by guard', labels: ['guard'] },
  store_errors: {
    help: 'Operations that the store refused or did not answer',
    labels: ['code'],
    zero: [{ code: 'store_unavailable' }, { code: 'store_corrupt' }],
  },
  queue_errors: {
    help: 'Wakes that the queue did not take; sweeps make up for them',
    labels: ['code'],
    zero: [{ code: 'queue_unavailable' }],
  },
  wakes_ignored: { help: 'Jobs in the queue that are not well-formed wakes', labels: [] },
  leases_lost: { help: 'Leases that another process took over', labels: [] },
  sweeps: { help: 'Rounds of the sweeper in this process', labels: [] },
  sweep_found: { help: 'Actors that sweeps found with work and woke', labels: [] },
  budget_refused: {
    help: 'Model calls that a budget did not allow',
    labels: ['scope'],
    zero: [{ scope: 'tenant' }, { scope: 'conversation' }, { scope: 'agent' }],
  },
  budget_retries: {
    help: 'Reservations and settlements written again because another process was faster',
    labels: [],
  },
  actors_failed: {
    help: 'Actors set aside until somebody resumes them',
    labels: ['code'],
    zero: [
      { code: 'actor_corrupt' },
      { code: 'store_corrupt' },
      { code: 'event_conflict' },
      { code: 'event_invalid' },
    ],
  },
};

const TIMERS: { [N in keyof Timers]: { help: string; labels: string[]; buckets: number[] } } = {
  wake_wait: {
    help: 'From a wake to the start of what it asked for',
    labels: [],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
  activation: {
    help: 'What a wake set off, from lease to release',
    labels: ['outcome'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
  },
  model_call: {
    help: 'Model calls, from request to last word',
    labels: ['provider'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300],
  },
};

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

  async function ask(troupe: Pick<Troupe, 'queues' | 'health'>): Promise<void> {
    const [queues, health] = await Promise.all([
      within(SERVICE_MS, troupe.queues()),
      within(SERVICE_MS, troupe.health()),
    ]);
    // Rather no number than an old one.
    depth.reset();
    for (const [state, wakes] of Object.entries(queues ?? {})) depth.set({ state }, wakes);
    up.set({ service: 'store' }, health?.store === 'ok' ? 1 : 0);
    up.set({ service: 'queue' }, health?.queue === 'ok' ? 1 : 0);
  }

  return {
    count(name, labels, by = 1) {
      if (by > 0) counters[name].inc({ ...labels }, by);
    },
    time(name, labels, ms) {
      // Wall clocks of two machines may disagree, and what came before it was asked for took no time.
      if (!Number.isNaN(ms)) timers[name].observe({ ...labels }, Math.max(0, ms) / 1_000);
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
