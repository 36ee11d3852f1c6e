import { ERROR_CODES } from '../base/errors.ts';
import {
  CompactionReason,
  CompactionStrategy,
  DEFAULT_TENANT,
  EVENT_KINDS,
  Guard,
  ToolOutcome,
} from './index.ts';

/**
 * The metrics of a process. The list is closed: a name that is not in `METRICS` cannot be counted.
 *  M1  Methods never wait and never throw.
 *  M2  Labels take few values, never the id of a conversation, agent, turn or event. Metrics of use and cost have the
 *      tenant as a label; an exporter shows the first `TENANTS_SHOWN` tenants and adds up the others.
 *  M3  Times are in ms; exporters convert them.
 */
export interface Metrics {
  /** Adds to a counter. */
  count<N extends keyof Counters>(name: N, labels: Counters[N], by?: number): void;
  /** Records a duration, ms. */
  time<N extends keyof Timers>(name: N, labels: Timers[N], ms: number): void;
  /** Raises or lowers a level by one. */
  change(name: keyof Levels, by: 1 | -1): void;
}

export const NO_METRICS: Metrics = { count: () => {}, time: () => {}, change: () => {} };

/** Tenants with series of their own, which last as long as the process. All others are shown as `other`. */
export const TENANTS_SHOWN = 100;

type Labels = Readonly<Record<string, readonly string[]>>;
/** Values that are not known in advance: tenants, providers. */
const OPEN: readonly string[] = [];

interface Metric<T extends string, L extends Labels> {
  type: T;
  /** Its explanation in the documents, in Markdown, and in `/metrics`. */
  means: string;
  labels: L;
}

/** A value that only rises: `troupe_NAME_total`. */
interface Counter<L extends Labels = Labels> extends Metric<'counter', L> {
  /** Series shown as 0 from the start: an alert on an increase misses the first value of a new series. */
  zero: readonly Record<string, string>[];
}

/** Durations: `troupe_NAME_seconds`. */
interface Timer<L extends Labels = Labels> extends Metric<'timer', L> {
  /** Upper bounds of the buckets, in seconds. */
  buckets: readonly number[];
}

/** A value that rises and falls: `troupe_NAME`. */
type Level = Metric<'level', Record<never, never>>;
/** A value that is asked for when the metrics are read: `troupe_NAME`. */
type Reading<L extends Labels = Labels> = Metric<'reading', L>;

/** With `zero`, the values of the closed labels whose series begin at 0; the tenant is the default one. */
function counter<const L extends Labels = Record<never, never>>(
  means: string,
  labels?: L,
  zero?: { readonly [N in keyof L]?: readonly L[N][number][] },
): Counter<L> {
  const known = { ...(labels && 'tenant' in labels ? { tenant: [DEFAULT_TENANT] } : {}), ...zero };
  return { type: 'counter', means, labels: labels ?? ({} as L), zero: zero ? combinationsOf(known) : [] };
}

function combinationsOf(values: {
  [label: string]: readonly string[] | undefined;
}): Record<string, string>[] {
  return Object.entries(values).reduce<Record<string, string>[]>(
    (all, [label, each = []]) =>
      all.flatMap((series) => each.map((value) => ({ ...series, [label]: value }))),
    [{}],
  );
}

function timer<const L extends Labels = Record<never, never>>(
  means: string,
  buckets: readonly number[],
  labels?: L,
): Timer<L> {
  return { type: 'timer', means, labels: labels ?? ({} as L), buckets };
}

function level(means: string): Level {
  return { type: 'level', means, labels: {} };
}

function reading<const L extends Labels>(means: string, labels: L): Reading<L> {
  return { type: 'reading', means, labels };
}

/** `a`, `b`, `c` */
function inCode(values: readonly string[]): string {
  return values.map((value) => `\`${value}\``).join(', ');
}

const TURN_ENDS = ['done', 'failed', 'aborted'] as const;

/**
 * `wait`: from the newest event that the turn answers to its start. `relief`: compaction. `admission`: waiting for the
 * provider's limits, for budgets and for writing answers. `stream`: from the first token to the last.
 */
const TURN_PARTS = [
  'wait',
  'build',
  'relief',
  'admission',
  'first_token',
  'stream',
  'tools',
  'back_off',
  'commit',
] as const;
export type TurnPart = (typeof TURN_PARTS)[number];

const COMPACTED = { strategy: CompactionStrategy.options, reason: CompactionReason.options };

const REFUSED = [
  'token_required',
  'scope_missing',
  'author_refused',
  'rate_limited',
  'tenant_busy',
  'host_refused',
  'origin_refused',
] as const;

/**
 * Every metric, in the order of the documents. `npm run docs` writes their table, `npm run metrics` their dashboard.
 * A label whose values are not `OPEN` takes these alone.
 */
export const METRICS = {
  turns: counter(
    `turns that ended: ${inCode(TURN_ENDS)}`,
    { tenant: OPEN, outcome: TURN_ENDS },
    { outcome: TURN_ENDS },
  ),
  turn: timer(
    'from the start of a turn to its commit',
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 900],
    { outcome: TURN_ENDS },
  ),
  turn_part: timer(
    'the parts of that time; a turn counts only those that it had',
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300],
    { part: TURN_PARTS },
  ),
  model_calls: counter('calls of models: `answered`, `aborted`, or the code of the error', {
    tenant: OPEN,
    provider: OPEN,
    outcome: ['answered', 'aborted', ...ERROR_CODES],
  }),
  model_call: timer(
    'from the request to the last word',
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300],
    { provider: OPEN },
  ),
  model_first_token: timer(
    'from the request to the first word, reasoning or call',
    [0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 20, 40, 60],
    { provider: OPEN },
  ),
  model_retries: counter('repeated calls, by the failure', { provider: OPEN, code: ERROR_CODES }),
  tokens: counter(
    'as providers counted them, when a turn ends: `input` (with cache reads and writes), `output` (with reasoning), `cache_read`, `cache_write`, `reasoning`',
    { tenant: OPEN, provider: OPEN, kind: ['input', 'output', 'cache_read', 'cache_write', 'reasoning'] },
  ),
  cost_usd: counter(
    "US dollars by the agents' `price`, else by list prices; the same as budgets count. For a call without usage: its maximum cost",
    { tenant: OPEN, provider: OPEN },
  ),
  unpriced_calls: counter('calls whose model has no price: not part of any cost', { provider: OPEN }),
  tool_calls: counter(
    '`done`, `failed`, `lost` (interrupted, may have had its effect), `waiting` (for approval)',
    { tenant: OPEN, outcome: ToolOutcome.options },
    { outcome: ToolOutcome.options },
  ),
  tool_call: timer(
    'from the call to its result',
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
    { outcome: ToolOutcome.options },
  ),
  compactions: counter(
    `compactions: ${inCode(COMPACTED.strategy)}; because of ${inCode(COMPACTED.reason)}`,
    COMPACTED,
    COMPACTED,
  ),
  compaction_saved_tokens: counter('tokens they saved, as counted by Troupe', COMPACTED, COMPACTED),
  compactions_failed: counter(
    'attempts without a result; another strategy may have worked then',
    { reason: COMPACTED.reason },
    { reason: COMPACTED.reason },
  ),
  guards: counter('stops by guards', { tenant: OPEN, guard: Guard.options }),
  budget_refused: counter(
    'calls refused by a budget',
    { tenant: OPEN, scope: ['tenant', 'conversation', 'tree', 'agent'] },
    { scope: ['tenant', 'conversation', 'agent'] },
  ),
  budget_retries: counter('budget writes repeated because another process was faster'),
  actors_failed: counter(
    'actors that failed: they take no turns until a person resumes them',
    { tenant: OPEN, code: ERROR_CODES },
    { code: ['actor_corrupt', 'store_corrupt', 'event_conflict', 'event_invalid'] },
  ),
  requests_refused: counter(
    `requests refused for their caller, scope or rate: ${inCode(REFUSED)}`,
    { code: REFUSED },
    { code: REFUSED },
  ),
  webhook_deliveries: counter(
    'delivery attempts of webhooks and of notifications of A2A: `taken`, `refused`, `gone`, `failed`',
    { tenant: OPEN, outcome: ['taken', 'refused', 'gone', 'failed'] },
  ),
  nostr_received: counter('events that relays sent'),
  nostr_refused: counter('events that were refused: `signature`, `id`, `shape`, `rate`, `repeated`, …', {
    reason: OPEN,
  }),
  nostr_published: counter(
    'publishing attempts: `published`, `refused`, `failed`',
    { outcome: ['published', 'refused', 'failed'] },
    { outcome: ['published', 'refused', 'failed'] },
  ),
  leases_held: level('actors this process holds now: concurrent turns'),
  leases_lost: counter('leases that another process took over'),
  queue_wakes: reading('wakes `waiting`, `active`, `delayed`, over all processes', { state: OPEN }),
  wake_wait: timer(
    'from a wake to the start of its turn, the wait for a slot included',
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  ),
  activation: timer(
    'the activation of an actor, from lease to release',
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
    { outcome: ['done', 'busy', 'failed'] },
  ),
  wakes_ignored: counter('jobs in the queue that are not well-formed wakes'),
  queue_mended: counter(
    'repaired keys in Redis (`key`), and times the queue was emptied for it (`queue`)',
    { part: ['queue', 'key'] },
    { part: ['queue', 'key'] },
  ),
  sweeps: counter('rounds of the sweeper in this process'),
  sweep_found: counter('actors with work whose wake was lost, found by sweeps'),
  events_appended: counter('events written', { tenant: OPEN }, {}),
  append_retries: counter('appends repeated because another writer had taken the seq'),
  posts_too_late: counter('ends of tasks that had already ended', { kind: EVENT_KINDS }),
  store_errors: counter(
    'operations the store refused or did not answer',
    { code: ERROR_CODES },
    { code: ['store_unavailable', 'store_corrupt'] },
  ),
  damaged_events: counter(
    'stored events whose content does not match its hash (`altered`) or that cannot be read (`unreadable`); each once per process',
    { damage: ['altered', 'unreadable'] },
    { damage: ['altered', 'unreadable'] },
  ),
  queue_errors: counter(
    'wakes the queue did not accept; sweeps make up for them',
    { code: ERROR_CODES },
    { code: ['queue_unavailable'] },
  ),
  service_up: reading('1 if this process reaches `store`, `queue`', { service: ['store', 'queue'] }),
  build_info: reading('always 1', { version: OPEN, node: OPEN }),
};

type OfType<T extends string> = {
  [N in keyof typeof METRICS as (typeof METRICS)[N]['type'] extends T ? N : never]: {
    -readonly [L in keyof (typeof METRICS)[N]['labels']]: ValueOf<(typeof METRICS)[N]['labels'][L]>;
  };
};
type ValueOf<V> = V extends readonly (infer Value)[] ? Value : never;

/** The labels of each counter. */
export type Counters = OfType<'counter'>;
/** The labels of each timer. */
export type Timers = OfType<'timer'>;
type Levels = OfType<'level'>;
/** What an exporter asks for when the metrics are read. */
export type Readings = OfType<'reading'>;
