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
