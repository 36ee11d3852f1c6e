import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { type Counters, type Levels, type Metrics, TENANTS_SHOWN, type Timers } from '../metrics.ts';
import type { Troupe } from '../troupe.ts';
import { within } from './readiness.ts';
import { REFUSALS_COUNTED } from './refusal.ts';
import { CompactionReason, CompactionStrategy, DEFAULT_TENANT } from '../events/index.ts';

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
    // No number is better than an old one.
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
const RELIEFS = CompactionStrategy.options.flatMap((strategy) =>
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
  append_retries: { help: 'Appends tried again because another writer had taken the seq', labels: [] },
  turns: {
    help: 'Turns that ended',
    labels: ['tenant', 'outcome'],
    zero: [
      { tenant: DEFAULT_TENANT, outcome: 'done' },
      { tenant: DEFAULT_TENANT, outcome: 'failed' },
      { tenant: DEFAULT_TENANT, outcome: 'aborted' },
    ],
  },
  model_calls: { help: 'Model calls by how they ended', labels: ['tenant', 'provider', 'outcome'] },
  model_retries: { help: 'Model calls made again, by what had failed', labels: ['provider', 'code'] },
  cost_usd: { help: 'US dollars by list prices', labels: ['tenant', 'provider'] },
  unpriced_calls: { help: 'Model calls without a price, which are in no cost', labels: ['provider'] },
  tokens: { help: 'Tokens as providers counted them', labels: ['tenant', 'provider', 'kind'] },
  tool_calls: {
    help: 'Tool calls by how they ended',
    labels: ['tenant', 'outcome'],
    zero: [
      { tenant: DEFAULT_TENANT, outcome: 'done' },
      { tenant: DEFAULT_TENANT, outcome: 'failed' },
      { tenant: DEFAULT_TENANT, outcome: 'lost' },
      { tenant: DEFAULT_TENANT, outcome: 'waiting' },
    ],
  },
  compactions: { help: 'Prompts that were made shorter', labels: ['strategy', 'reason'], zero: RELIEFS },
  compaction_saved_tokens: {
    help: 'Tokens by which prompts became shorter, as counted here',
    labels: ['strategy', 'reason'],
    zero: RELIEFS,
  },
  compactions_failed: {
    help: 'Tries to make a prompt shorter that came to nothing',
    labels: ['reason'],
    zero: REASONS.map((reason) => ({ reason })),
  },
  posts_too_late: { help: 'Ends of tasks that had been ended by somebody else', labels: ['kind'] },
  guards: { help: 'What was stopped, by guard', labels: ['tenant', 'guard'] },
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
  queue_mended: {
    help: 'Damaged keys of the queue that were put right, and times that it was emptied for that',
    labels: ['part'],
    zero: [{ part: 'queue' }, { part: 'key' }],
  },
  leases_lost: { help: 'Leases that another process took over', labels: [] },
  sweeps: { help: 'Rounds of the sweeper in this process', labels: [] },
  sweep_found: { help: 'Actors that sweeps found with work and woke', labels: [] },
  budget_refused: {
    help: 'Model calls that a budget did not allow',
    labels: ['tenant', 'scope'],
    zero: [
      { tenant: DEFAULT_TENANT, scope: 'tenant' },
      { tenant: DEFAULT_TENANT, scope: 'conversation' },
      { tenant: DEFAULT_TENANT, scope: 'agent' },
    ],
  },
  budget_retries: {
    help: 'Reservations and settlements written again because another process was faster',
    labels: [],
  },
  webhook_deliveries: {
    help: 'Tries to deliver to webhooks, by how they ended',
    labels: ['tenant', 'outcome'],
  },
  nostr_received: { help: 'Events that relays sent', labels: [] },
  nostr_refused: { help: 'Events and frames of relays that were not taken', labels: ['reason'] },
  requests_refused: {
    help: 'Requests refused for who asked, what for or how often',
    labels: ['code'],
    zero: REFUSALS_COUNTED.map((code) => ({ code })),
  },
  nostr_published: {
    help: 'Tries to publish an event to a relay, by how they ended',
    labels: ['outcome'],
    zero: [{ outcome: 'published' }, { outcome: 'refused' }, { outcome: 'failed' }],
  },
  actors_failed: {
    help: 'Actors set aside until somebody resumes them',
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
    help: 'Where the time of turns went; a part is not in the turns that did not have it',
    labels: ['part'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300],
  },
};

const LEVELS: { [N in keyof Levels]: string } = {
  leases_held: 'Actors that this process holds',
};
