import { writeFileSync } from 'node:fs';
import { METRICS } from '../src/events/metrics.ts';
import { seriesOf } from '../src/http/metrics.ts';

/**
 * `npm run metrics`: writes the dashboard `docs/grafana/troupe.json`. A metric that no panel of `ROWS` shows gets a panel in the last row, so that a new one is declared in one place.
 */
const DASHBOARD = new URL('../docs/grafana/troupe.json', import.meta.url);

interface Panel {
  title: string;
  description: string;
  /** Unit of Grafana. Default: `short`. */
  unit?: string;
}

/** One number. In queries `{` filters by the dashboard's job and instance too. */
interface Stat extends Panel {
  query: string;
  /** Label of the value. Default: none. */
  legend?: string;
  decimals?: number;
  /** Its colours and the values from which they hold; `null`: from the lowest. */
  colours?: Record<string, number | null>;
}

/** Lines over time, by their labels. */
interface Graph extends Panel {
  /** Each with its legend. */
  queries: readonly (readonly [legend: string, query: string])[];
  max?: number;
  stacked?: boolean;
}

interface Row {
  title: string;
  stats?: readonly Stat[];
  graphs: readonly Graph[];
}

const ROWS: readonly Row[] = [
  {
    title: 'Health',
    stats: [
      {
        title: 'Store',
        description: '1: every process reaches the service',
        query: 'min(troupe_service_up{service="store"})',
        colours: { red: null, green: 1 },
      },
      {
        title: 'Queue',
        description: '1: every process reaches the service',
        query: 'min(troupe_service_up{service="queue"})',
        colours: { red: null, green: 1 },
      },
      {
        title: 'Processes',
        description: 'By version; more than one for an hour: a deploy is stuck',
        query: 'count by (version) (troupe_build_info{})',
        legend: '{{version}}',
      },
      {
        title: 'Turns at once',
        description: 'Actors held now, over all processes',
        query: 'sum(troupe_leases_held{})',
      },
      {
        title: 'Failed actors',
        description: 'In the range shown. They take no turns until they are resumed',
        query: 'sum(increase(troupe_actors_failed_total{}[$__range]))',
        decimals: 0,
        colours: { green: null, red: 1 },
      },
      {
        title: 'Turns failed',
        description: 'Share of all turns in the range shown',
        query:
          'sum(increase(troupe_turns_total{outcome="failed"}[$__range])) / clamp_min(sum(increase(troupe_turns_total{}[$__range])), 1)',
        unit: 'percentunit',
        colours: { green: null, orange: 0.02, red: 0.1 },
      },
    ],
    graphs: [
      {
        title: 'Event loop lag, p99',
        description: 'Above half a second: too little CPU, or a CPU-bound tool',
        queries: [['{{instance}}', 'nodejs_eventloop_lag_p99_seconds{}']],
        unit: 's',
      },
      {
        title: 'Memory',
        description: 'Resident, by process',
        queries: [['{{instance}}', 'process_resident_memory_bytes{}']],
        unit: 'bytes',
      },
      {
        title: 'CPU',
        description: 'Seconds per second, by process',
        queries: [['{{instance}}', 'rate(process_cpu_seconds_total{}[$__rate_interval])']],
        unit: 'percentunit',
      },
    ],
  },
  {
    title: 'Turns and where their time goes',
    graphs: [
      {
        title: 'Turns',
        description: 'Ended, per second',
        queries: [['{{outcome}}', 'sum by (outcome) (rate(troupe_turns_total{}[$__rate_interval]))']],
        unit: 'ops',
        stacked: true,
      },
      {
        title: 'Turn, from start to commit',
        description: 'Quantiles of completed turns',
        queries: [
          [
            'p50',
            'histogram_quantile(0.5, sum by (le) (rate(troupe_turn_seconds_bucket{outcome="done"}[$__rate_interval])))',
          ],
          [
            'p95',
            'histogram_quantile(0.95, sum by (le) (rate(troupe_turn_seconds_bucket{outcome="done"}[$__rate_interval])))',
          ],
          [
            'p99',
            'histogram_quantile(0.99, sum by (le) (rate(troupe_turn_seconds_bucket{outcome="done"}[$__rate_interval])))',
          ],
        ],
        unit: 's',
      },
      {
        title: "Share of a turn's time by part",
        description: 'Mean seconds per turn: stacked, all parts but the wait add up to the turn',
        queries: [
          [
            '{{part}}',
            'sum by (part) (rate(troupe_turn_part_seconds_sum{}[$__rate_interval])) / scalar(clamp_min(sum(rate(troupe_turn_seconds_count{}[$__rate_interval])), 1e-9))',
          ],
        ],
        unit: 's',
        stacked: true,
      },
      {
        title: 'Parts, p95',
        description: 'Of the turns with this part',
        queries: [
          [
            '{{part}}',
            'histogram_quantile(0.95, sum by (le,part) (rate(troupe_turn_part_seconds_bucket{}[$__rate_interval])))',
          ],
        ],
        unit: 's',
      },
      {
        title: 'First token, p95',
        description: 'From the request to the first word, by provider',
        queries: [
          [
            '{{provider}}',
            'histogram_quantile(0.95, sum by (le,provider) (rate(troupe_model_first_token_seconds_bucket{}[$__rate_interval])))',
          ],
        ],
        unit: 's',
      },
      {
        title: 'Model calls and tools, p95',
        description: 'From request to last word; from call to result',
        queries: [
          [
            '{{provider}}',
            'histogram_quantile(0.95, sum by (le,provider) (rate(troupe_model_call_seconds_bucket{}[$__rate_interval])))',
          ],
          [
            'tool {{outcome}}',
            'histogram_quantile(0.95, sum by (le,outcome) (rate(troupe_tool_call_seconds_bucket{}[$__rate_interval])))',
          ],
        ],
        unit: 's',
      },
    ],
  },
  {
    title: 'Tokens, cost and cache',
    stats: [
      {
        title: 'Cost',
        description: 'US dollars in the range shown, by list prices',
        query: 'sum(increase(troupe_cost_usd_total{}[$__range]))',
        unit: 'currencyUSD',
        decimals: 2,
      },
      {
        title: 'Cost per turn',
        description: 'US dollars, mean over the range shown',
        query:
          'sum(increase(troupe_cost_usd_total{}[$__range])) / clamp_min(sum(increase(troupe_turns_total{}[$__range])), 1)',
        unit: 'currencyUSD',
        decimals: 4,
      },
      {
        title: 'Cache hit',
        description: 'Share of input tokens read from a cache, in the range shown',
        query:
          'sum(increase(troupe_tokens_total{kind="cache_read"}[$__range])) / clamp_min(sum(increase(troupe_tokens_total{kind="input"}[$__range])), 1)',
        unit: 'percentunit',
      },
      {
        title: 'Calls without a price',
        description: 'Model calls in the range shown that no cost includes: give their agents a price',
        query: 'sum(increase(troupe_unpriced_calls_total{}[$__range]))',
        decimals: 0,
        colours: { green: null, orange: 1 },
      },
    ],
    graphs: [
      {
        title: 'Cost per hour',
        description: 'US dollars by provider, at the current rate',
        queries: [
          ['{{provider}}', 'sum by (provider) (rate(troupe_cost_usd_total{}[$__rate_interval])) * 3600'],
        ],
        unit: 'currencyUSD',
        stacked: true,
      },
      {
        title: 'Tokens',
        description: 'Per second, by kind; input includes cache reads and writes, output includes reasoning',
        queries: [['{{kind}}', 'sum by (kind) (rate(troupe_tokens_total{}[$__rate_interval]))']],
      },
      {
        title: 'Cache hit',
        description: 'Share of input tokens read from a cache, by provider',
        queries: [
          [
            '{{provider}}',
            'sum by (provider) (rate(troupe_tokens_total{kind="cache_read"}[$__rate_interval])) / sum by (provider) (rate(troupe_tokens_total{kind="input"}[$__rate_interval]))',
          ],
        ],
        unit: 'percentunit',
        max: 1,
      },
    ],
  },
  {
    title: 'Compactions',
    graphs: [
      {
        title: 'Compactions',
        description: 'In five minutes, by strategy',
        queries: [['{{strategy}}', 'sum by (strategy) (increase(troupe_compactions_total{}[5m]))']],
        stacked: true,
      },
      {
        title: 'Compactions by reason',
        description: 'In five minutes, by reason',
        queries: [['{{reason}}', 'sum by (reason) (increase(troupe_compactions_total{}[5m]))']],
        stacked: true,
      },
      {
        title: 'Tokens saved per compaction',
        description: 'Mean, by strategy',
        queries: [
          [
            '{{strategy}}',
            'sum by (strategy) (rate(troupe_compaction_saved_tokens_total{}[$__rate_interval])) / sum by (strategy) (rate(troupe_compactions_total{}[$__rate_interval]))',
          ],
        ],
      },
      {
        title: 'Failed compactions',
        description: 'In five minutes, by reason',
        queries: [['{{reason}}', 'sum by (reason) (increase(troupe_compactions_failed_total{}[5m]))']],
      },
    ],
  },
  {
    title: 'Queue and leases',
    graphs: [
      {
        title: 'Wakes',
        description: 'In the queue, by state; waiting that rises: too few workers, or caps too low',
        queries: [['{{state}}', 'max by (state) (troupe_queue_wakes{})']],
      },
      {
        title: 'Wait for a worker',
        description: 'Time from a wake to the start of its turn',
        queries: [
          [
            'p50',
            'histogram_quantile(0.5, sum by (le) (rate(troupe_wake_wait_seconds_bucket{}[$__rate_interval])))',
          ],
          [
            'p95',
            'histogram_quantile(0.95, sum by (le) (rate(troupe_wake_wait_seconds_bucket{}[$__rate_interval])))',
          ],
          [
            'p99',
            'histogram_quantile(0.99, sum by (le) (rate(troupe_wake_wait_seconds_bucket{}[$__rate_interval])))',
          ],
        ],
        unit: 's',
      },
      {
        title: 'Activations',
        description: 'Per second; busy: the actor was leased elsewhere, or a cap was reached',
        queries: [
          ['{{outcome}}', 'sum by (outcome) (rate(troupe_activation_seconds_count{}[$__rate_interval]))'],
        ],
        unit: 'ops',
      },
      {
        title: 'Leases',
        description: 'Held by each process; lost in five minutes: processes stall, or clocks differ',
        queries: [
          ['{{instance}}', 'troupe_leases_held{}'],
          ['lost', 'sum(increase(troupe_leases_lost_total{}[5m]))'],
        ],
      },
      {
        title: 'Sweeps',
        description: 'Per minute over all processes, and actors found with work whose wake was lost',
        queries: [
          ['sweeps', 'sum(rate(troupe_sweeps_total{}[5m])) * 60'],
          ['found', 'sum(rate(troupe_sweep_found_total{}[5m])) * 60'],
        ],
      },
      {
        title: 'Log',
        description: 'Events written per second, and repeated appends',
        queries: [
          ['events', 'sum(rate(troupe_events_appended_total{}[$__rate_interval]))'],
          ['retries', 'sum(rate(troupe_append_retries_total{}[$__rate_interval]))'],
        ],
        unit: 'ops',
      },
    ],
  },
  {
    title: 'Errors',
    graphs: [
      {
        title: 'Model calls that failed',
        description: 'In five minutes, by code',
        queries: [
          [
            '{{provider}} {{outcome}}',
            'sum by (provider, outcome) (increase(troupe_model_calls_total{outcome!~"answered|aborted"}[5m]))',
          ],
        ],
        stacked: true,
      },
      {
        title: 'Repeated model calls',
        description: 'In five minutes, by error',
        queries: [
          ['{{provider}} {{code}}', 'sum by (provider, code) (increase(troupe_model_retries_total{}[5m]))'],
        ],
        stacked: true,
      },
      {
        title: 'Tool calls',
        description: 'In five minutes, by outcome; lost: check each call',
        queries: [['{{outcome}}', 'sum by (outcome) (increase(troupe_tool_calls_total{}[5m]))']],
        stacked: true,
      },
      {
        title: 'Stopped by guards and budgets',
        description: 'In five minutes',
        queries: [
          ['{{guard}}', 'sum by (guard) (increase(troupe_guards_total{}[5m]))'],
          ['budget of the {{scope}}', 'sum by (scope) (increase(troupe_budget_refused_total{}[5m]))'],
        ],
        stacked: true,
      },
      {
        title: 'Store and queue',
        description: 'Refused or not answered, in five minutes',
        queries: [
          ['{{code}}', 'sum by (code) (increase(troupe_store_errors_total{}[5m]))'],
          ['{{code}}', 'sum by (code) (increase(troupe_queue_errors_total{}[5m]))'],
          ['{{damage}} events', 'sum by (damage) (increase(troupe_damaged_events_total{}[5m]))'],
          ['wakes that are not ours', 'sum(increase(troupe_wakes_ignored_total{}[5m]))'],
          ['damaged keys put right', 'sum(increase(troupe_queue_mended_total{}[5m]))'],
        ],
        stacked: true,
      },
      {
        title: 'Ends of tasks that came too late',
        description: 'In five minutes',
        queries: [
          ['too late: {{kind}}', 'sum by (kind) (increase(troupe_posts_too_late_total{}[5m]))'],
          ['budget retries', 'sum(increase(troupe_budget_retries_total{}[5m]))'],
        ],
      },
    ],
  },
  {
    title: 'Requests, webhooks and Nostr',
    graphs: [
      {
        title: 'Requests refused',
        description: 'In five minutes, by code',
        queries: [['{{code}}', 'sum by (code) (increase(troupe_requests_refused_total{}[5m]))']],
      },
      {
        title: 'Webhooks',
        description: 'Delivery attempts in five minutes',
        queries: [
          [
            '{{tenant}}: {{outcome}}',
            'sum by (tenant, outcome) (increase(troupe_webhook_deliveries_total{}[5m]))',
          ],
        ],
      },
      {
        title: 'Nostr',
        description: 'In five minutes',
        queries: [
          ['received', 'sum(increase(troupe_nostr_received_total{}[5m]))'],
          ['not taken: {{reason}}', 'sum by (reason) (increase(troupe_nostr_refused_total{}[5m]))'],
          ['out: {{outcome}}', 'sum by (outcome) (increase(troupe_nostr_published_total{}[5m]))'],
        ],
      },
    ],
  },
];

type Metric = Pick<(typeof METRICS)[keyof typeof METRICS], 'type' | 'labels' | 'means'>;

/** The panel of a metric that has none in `ROWS`. */
function panelOf(key: string, { type, labels, means }: Metric): Graph {
  const series = seriesOf(key, type);
  const by = Object.keys(labels).filter((label) => label !== 'tenant');
  const sum = by.length > 0 ? `sum by (${by.join(', ')}) ` : 'sum';
  const legend = by.map((label) => `{{${label}}}`).join(' ') || key;
  const panel = { title: series, description: means.replaceAll('`', '') };
  if (type === 'counter') return { ...panel, queries: [[legend, `${sum}(increase(${series}{}[5m]))`]] };
  if (type !== 'timer') return { ...panel, queries: [[legend, `${sum}(${series}{})`]] };
  const p95 = `histogram_quantile(0.95, sum by (${['le', ...by].join(', ')}) (rate(${series}_bucket{}[$__rate_interval])))`;
  return { ...panel, queries: [[legend, p95]], unit: 's' };
}

/** The dashboard of the metrics, as Grafana 11 imports it. */
export function dashboardOf(metrics: Record<string, Metric>): object {
  const shown = JSON.stringify(ROWS);
  const others = Object.entries(metrics).filter(
    ([key, { type }]) => !new RegExp(`\\b${seriesOf(key, type)}(?:_\\w+)?\\{`).test(shown),
  );
  const graphs = others.map(([key, metric]) => panelOf(key, metric));
  const rows = graphs.length > 0 ? [...ROWS, { title: 'More', graphs }] : ROWS;
  let [id, y] = [0, 0];
  const panels = rows.flatMap(({ title, stats = [], graphs }) => {
    const row = {
      id: ++id,
      type: 'row',
      title,
      collapsed: false,
      gridPos: { h: 1, w: 24, x: 0, y: y++ },
      panels: [],
    };
    const numbers = placed(stats.map(statPanel), 24 / (stats.length || 1), 4);
    const lines = placed(graphs.map(graphPanel), graphs.length === 4 ? 6 : 8, 8);
    return [row, ...numbers, ...lines];
  });
  return { ...FRAME, panels };

  function placed(parts: object[], w: number, h: number): object[] {
    const perLine = 24 / w;
    const top = y;
    y += Math.ceil(parts.length / perLine) * h;
    return parts.map((part, at) => ({
      ...part,
      id: ++id,
      datasource: SOURCE,
      gridPos: { h, w, x: (at % perLine) * w, y: top + Math.floor(at / perLine) * h },
    }));
  }
}

const SOURCE = { type: 'prometheus', uid: '${datasource}' };

function statPanel({
  title,
  description,
  query,
  legend = '',
  unit = 'short',
  decimals,
  colours,
}: Stat): object {
  const steps = Object.entries(colours ?? { text: null }).map(([color, value]) => ({ color, value }));
  return {
    type: 'stat',
    title,
    description,
    targets: [{ ...target(query, legend, 0), range: false, instant: true }],
    fieldConfig: {
      defaults: {
        unit,
        color: { mode: 'thresholds' },
        thresholds: { mode: 'absolute', steps },
        ...(decimals !== undefined && { decimals }),
      },
      overrides: [],
    },
    options: {
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
      colorMode: 'value',
      graphMode: 'none',
      textMode: 'auto',
      justifyMode: 'auto',
      orientation: 'auto',
    },
  };
}

function graphPanel({ title, description, queries, unit = 'short', max, stacked = false }: Graph): object {
  const custom = {
    drawStyle: 'line',
    lineWidth: 1,
    fillOpacity: stacked ? 30 : 8,
    showPoints: 'never',
    spanNulls: false,
    ...(stacked && { stacking: { mode: 'normal', group: 'A' } }),
  };
  return {
    type: 'timeseries',
    title,
    description,
    targets: queries.map(([legend, query], at) => ({ ...target(query, legend, at), range: true })),
    fieldConfig: { defaults: { unit, min: 0, custom, ...(max !== undefined && { max }) }, overrides: [] },
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  };
}

function target(query: string, legendFormat: string, at: number): object {
  const expr = query.replaceAll(
    /\{(?=(.))/g,
    (_, next) => `{job=~"$job",instance=~"$instance"${next === '}' ? '' : ','}`,
  );
  return { refId: 'ABCDEFGH'[at], datasource: SOURCE, expr, legendFormat };
}

function variable(name: string, label: string, query: string): object {
  return {
    name,
    label,
    type: 'query',
    datasource: SOURCE,
    definition: query,
    query: { query, refId: name },
    refresh: 2,
    includeAll: true,
    allValue: '.*',
    multi: true,
    sort: 1,
    current: { text: 'All', value: '$__all' },
    hide: 0,
  };
}

const FRAME = {
  title: 'Troupe',
  uid: 'troupe',
  description:
    'Turns, tokens and cost, compactions, queue and leases, errors. What each metric means: docs/reference/metrics.md.',
  tags: ['troupe'],
  schemaVersion: 39,
  version: 1,
  editable: true,
  graphTooltip: 1,
  refresh: '30s',
  time: { from: 'now-3h', to: 'now' },
  timezone: 'browser',
  annotations: { list: [] },
  links: [],
  templating: {
    list: [
      {
        name: 'datasource',
        label: 'Data source',
        type: 'datasource',
        query: 'prometheus',
        refresh: 1,
        hide: 0,
        includeAll: false,
        multi: false,
        current: {},
      },
      variable('job', 'Job', 'label_values(troupe_build_info, job)'),
      variable('instance', 'Instance', 'label_values(troupe_build_info{job=~"$job"}, instance)'),
    ],
  },
};

if (import.meta.main) {
  writeFileSync(DASHBOARD, JSON.stringify(dashboardOf(METRICS), null, 2) + '\n');
}
