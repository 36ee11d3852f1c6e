import { expect, test } from 'vitest';
import { createMetrics } from '../../src/http/metrics.ts';
import { createStatusApp } from '../../src/http/api/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { ANA, ECHO, scripted, startApi } from './harness.ts';

const newMetrics = () => createMetrics({ version: '1.2.3' });

/** Value of the series that starts like this; null if there is none. */
function valueOf(page: unknown, series: string): number | null {
  const line = String(page)
    .split('\n')
    .find((each) => each.startsWith(`${series} `));
  return line === undefined ? null : Number(line.slice(series.length + 1));
}

async function pageOf(api: { get(path: string): Promise<{ body: Record<string, unknown> }> }) {
  return (await api.get('/metrics')).body['text'];
}

test('the metrics count work in the text format of Prometheus', async () => {
  const metrics = newMetrics();
  const agents = [ECHO, scripted('broken', [{ fail: { code: 'provider_auth', message: 'no key' } }])];
  await using api = await startApi({ agents, metrics, troupe: { metrics } });
  for (const to of ['echo', 'echo', 'broken']) {
    await api.troupe.send('c1', { author: ANA, to: [to], content: 'x' });
    await api.troupe.idle();
  }
  const answer = await api.get('/metrics');
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  const page = answer.body['text'];
  expect(valueOf(page, 'troupe_turns_total{tenant="default",outcome="done"}')).toBe(2);
  expect(valueOf(page, 'troupe_turns_total{tenant="default",outcome="failed"}')).toBe(1);
  const call = (outcome: string) =>
    `troupe_model_calls_total{tenant="default",provider="scripted",outcome="${outcome}"}`;
  expect(valueOf(page, call('answered'))).toBe(2);
  expect(valueOf(page, call('provider_auth'))).toBe(1);
  expect(
    valueOf(page, 'troupe_tokens_total{tenant="default",provider="scripted",kind="output"}'),
  ).toBeGreaterThan(0);
  expect(valueOf(page, 'troupe_events_appended_total{tenant="default"}')).toBeGreaterThanOrEqual(3);
  expect(valueOf(page, 'troupe_queue_wakes{state="waiting"}')).toBe(0);
  expect(valueOf(page, 'troupe_service_up{service="store"}')).toBe(1);
  expect(page).toMatch(/^troupe_build_info\{version="1\.2\.3",node="24\./m);
  expect(page).toMatch(/^nodejs_eventloop_lag_p99_seconds /m);
});

test('no label contains an id', async () => {
  const metrics = newMetrics();
  await using api = await startApi({ metrics, troupe: { metrics } });
  await api.troupe.send('very-private-name', { author: ANA, to: ['echo'], content: 'x' });
  await api.troupe.idle();
  const page = String(await pageOf(api));
  for (const id of ['very-private-name', '"echo"', ANA.id]) expect(page).not.toContain(id);
});

test('an alert sees the first failure, because the series exist before, at 0', async () => {
  await using api = await startApi({ metrics: newMetrics() });
  const page = await pageOf(api);
  for (const series of [
    'troupe_actors_failed_total{tenant="default",code="actor_corrupt"}',
    'troupe_turns_total{tenant="default",outcome="failed"}',
    'troupe_tool_calls_total{tenant="default",outcome="lost"}',
    'troupe_store_errors_total{code="store_unavailable"}',
    'troupe_wakes_ignored_total',
  ]) {
    expect([series, valueOf(page, series)]).toEqual([series, 0]);
  }
});

test('times are in seconds, and a clock that went back does no harm', async () => {
  const metrics = newMetrics();
  await using api = await startApi({ metrics });
  for (const ms of [1_500, -20, Number.NaN]) metrics.time('wake_wait', {}, ms);
  metrics.count('append_retries', {}, -1);
  const page = await pageOf(api);
  expect(valueOf(page, 'troupe_wake_wait_seconds_sum')).toBe(1.5);
  expect(valueOf(page, 'troupe_wake_wait_seconds_count')).toBe(2);
  expect(valueOf(page, 'troupe_append_retries_total')).toBe(0);
});

test('unavailable services remove only their own metrics', async () => {
  const wrap = (troupe: Troupe): Troupe => ({
    ...troupe,
    queues: () => Promise.reject(new Error('away')),
    health: () => Promise.resolve({ store: 'ok', queue: 'away' }),
  });
  await using api = await startApi({ metrics: newMetrics(), wrap });
  const page = await pageOf(api);
  expect(valueOf(page, 'troupe_service_up{service="store"}')).toBe(1);
  expect(valueOf(page, 'troupe_service_up{service="queue"}')).toBe(0);
  expect(valueOf(page, 'troupe_queue_wakes{state="waiting"}')).toBe(null);
  expect(valueOf(page, 'troupe_sweeps_total')).toBe(0);
});

test('metrics are guarded like all other routes', async () => {
  await using api = await startApi({ metrics: newMetrics(), token: 's3cret' });
  expect((await api.get('/metrics')).status).toBe(401);
  const headers = { authorization: 'Bearer s3cret' };
  expect((await api.get('/metrics', { headers })).status).toBe(200);
  await using open = await startApi({ metrics: newMetrics() });
  expect((await open.get('/metrics', { headers: { host: 'evil.example' } })).status).toBe(403);
});

test('a server without metrics says so', async () => {
  await using api = await startApi();
  const { status, body } = await api.get('/metrics');
  expect([status, body]).toMatchObject([404, { error: { code: 'route_unknown' } }]);
});

test('a worker shows health, readiness and metrics, and nothing from the log', async () => {
  await using api = await startApi();
  const stop = new AbortController();
  const options = { metrics: newMetrics(), signal: stop.signal, onError: () => {} };
  const app = createStatusApp(api.troupe, options);
  const statusOf = async (path: string) => (await app.request(path)).status;
  expect(await Promise.all(['/healthz', '/readyz', '/metrics'].map(statusOf))).toEqual([200, 200, 200]);
  expect(await statusOf('/api/conversations')).toBe(404);
  stop.abort();
  expect(await Promise.all(['/healthz', '/readyz', '/metrics'].map(statusOf))).toEqual([200, 503, 200]);
});
