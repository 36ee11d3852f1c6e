import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { dashboardOf } from '../../scripts/write-metrics.ts';
import { METRICS } from '../../src/events/metrics.ts';
import { createMetrics, seriesOf } from '../../src/http/metrics.ts';

const Target = z.object({ expr: z.string().min(1), refId: z.string() });
const Panel = z.object({
  id: z.int(),
  type: z.enum(['row', 'timeseries', 'stat']),
  title: z.string().min(1),
  description: z.string().min(1).optional(),
  datasource: z.object({ uid: z.literal('${datasource}') }).optional(),
  gridPos: z.object({ h: z.int(), w: z.int(), x: z.int(), y: z.int() }),
  targets: z.array(Target).optional(),
});
const Dashboard = z.object({
  title: z.literal('Troupe'),
  schemaVersion: z.int().min(39),
  templating: z.object({ list: z.array(z.object({ name: z.string(), type: z.string() })) }),
  panels: z.array(Panel),
});

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const dashboard = Dashboard.parse(JSON.parse(read('docs/grafana/troupe.json')));
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

/** Node's own metrics, three of which the dashboard shows. */
const NOT_SHOWN = /^(?:nodejs|process)_/;

async function registered(): Promise<{ name: string; type: string }[]> {
  const away = {
    queues: () => Promise.reject(new Error('away')),
    health: () => Promise.reject(new Error('away')),
  };
  const page = await createMetrics({ version: '1' }).text(away);
  return [...page.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => ({ name, type }));
}

const namesIn = (text: string) => new Set(text.match(/\b(?:troupe|nodejs|process)_\w+(?=[{[\s]|$|`)/g) ?? []);

test('every metric of the dashboard exists, with the queried suffix', async () => {
  const series = (await registered()).flatMap(({ name, type }) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  );
  const asked = [...namesIn(queries.join('\n'))];
  expect(asked.length).toBeGreaterThan(30);
  expect(asked.filter((name) => !series.includes(name))).toEqual([]);
});

test("every metric is on the dashboard, except some of Node's own", async () => {
  const asked = new Set(
    [...namesIn(queries.join('\n'))].map((name) => name.replace(/_(?:bucket|sum|count)$/, '')),
  );
  const left = (await registered()).map(({ name }) => name).filter((name) => !asked.has(name));
  expect(left.filter((name) => !NOT_SHOWN.test(name))).toEqual([]);
});

test('queries use only labels of the metric', () => {
  const known = new Map(
    Object.entries(METRICS).map(([key, { type, labels }]) => [seriesOf(key, type), Object.keys(labels)]),
  );
  for (const expr of queries) {
    const by = /by \(([^)]*)\)/.exec(expr)?.[1]?.split(/,\s*/) ?? [];
    const [name = ''] = namesIn(expr);
    const labels = known.get(name.replace(/_(?:bucket|sum|count)$/, ''));
    if (!labels) continue;
    const filtered = [...expr.matchAll(/(\w+)(?:=~|!~|=|!=)"/g)].map(([, label = '']) => label);
    const allowed = [...labels, 'le', 'job', 'instance'];
    expect({ expr, unknown: [...by, ...filtered].filter((label) => !allowed.includes(label)) }).toEqual({
      expr,
      unknown: [],
    });
  }
});

test('its panels have a selectable source, a description, a separate place and balanced brackets in queries', () => {
  expect(dashboard.templating.list[0]).toEqual({ name: 'datasource', type: 'datasource' });
  const ids = dashboard.panels.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const taken = new Set<string>();
  for (const { type, title, description, datasource, gridPos } of dashboard.panels) {
    if (type !== 'row')
      expect([title, typeof description, datasource?.uid]).toEqual([title, 'string', '${datasource}']);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect([title, x < 24, taken.has(`${x}.${y}`)]).toEqual([title, true, false]);
        taken.add(`${x}.${y}`);
      }
    }
  }
  for (const expr of queries) {
    for (const [open = '', close = ''] of ['()', '[]', '{}'])
      expect([expr, expr.split(open).length]).toEqual([expr, expr.split(close).length]);
  }
});

test('the dashboard is what `npm run metrics` writes', () => {
  expect(JSON.parse(read('docs/grafana/troupe.json'))).toEqual(dashboardOf(METRICS));
});

test('a metric that no panel shows gets one of its own, in the last row', () => {
  const { panels } = Dashboard.parse(
    dashboardOf({
      ...METRICS,
      naps: { type: 'counter', means: 'naps: `long`', labels: { tenant: [], length: [] } },
      nap: { type: 'timer', means: 'of a nap', labels: {} },
      sleepers: { type: 'level', means: 'asleep', labels: {} },
    }),
  );
  expect(panels.filter(({ type }) => type === 'row').at(-1)?.title).toBe('More');
  const at = '{job=~"$job",instance=~"$instance"}';
  expect(panels.slice(-3).map(({ title, targets }) => [title, targets?.[0]?.expr])).toEqual([
    ['troupe_naps_total', `sum by (length) (increase(troupe_naps_total${at}[5m]))`],
    [
      'troupe_nap_seconds',
      `histogram_quantile(0.95, sum by (le) (rate(troupe_nap_seconds_bucket${at}[$__rate_interval])))`,
    ],
    ['troupe_sleepers', `sum(troupe_sleepers${at})`],
  ]);
});

test('the documents mention no metric that does not exist', async () => {
  const names = (await registered()).map(({ name }) => name);
  const pages = ['how-to/operations', 'reference/observability', 'reference/metrics'];
  const texts = pages.map((page) => read(`docs/${page}.md`)).join('\n');
  const mentioned = [...texts.matchAll(/\btroupe_\w+/g)].map(([name]) =>
    name.replace(/_(?:bucket|sum|count)$/, ''),
  );
  expect(mentioned.length).toBeGreaterThan(50);
  expect(mentioned.filter((name) => !names.includes(name))).toEqual([]);
});
