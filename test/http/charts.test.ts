import { expect, test } from 'vitest';
import { CHARTS } from '../../src/library/projection/charts.ts';
import { startApi } from './harness.ts';

test('the charts are sent once to a client that caches them', async () => {
  await using api = await startApi();
  const first = await api.get('/api/charts');
  expect([first.status, first.body]).toEqual([200, { charts: CHARTS }]);
  const etag = first.headers.get('etag') ?? '';
  const again = await api.get('/api/charts', { headers: { 'if-none-match': etag } });
  expect([again.status, again.body, again.headers.get('etag')]).toEqual([304, { text: '' }, etag]);
  const other = await api.get('/api/charts', { headers: { 'if-none-match': '"of-another-version"' } });
  expect(other.status).toBe(200);
});

test('transitions are sent without the places where they are drawn', async () => {
  await using api = await startApi();
  const drawn = await api.get('/api/charts');
  const { body, headers } = await api.get('/api/charts?drawn=false');
  const { availability } = (body as { charts: Record<string, unknown> }).charts;
  expect(availability).toEqual({
    edges: CHARTS.availability.edges.map(({ from, to, event, guard }) => ({ from, to, event, guard })),
    anywhere: CHARTS.availability.anywhere,
  });
  expect(headers.get('etag')).not.toBe(drawn.headers.get('etag'));
});
