import type { Hono } from 'hono';
import { CHARTS } from '../../projection/charts.ts';

/** The machines as they are drawn. They change with the version of Troupe alone. */
export function addChartRoutes(app: Hono): void {
  const body = JSON.stringify({ charts: CHARTS });
  const tag = `"${Object.values(CHARTS)
    .map(({ hash }) => hash)
    .join('-')}-${body.length}"`;
  app.get('/api/charts', (context) => {
    const headers = { etag: tag, 'cache-control': 'no-cache' };
    if (context.req.header('if-none-match') === tag) return context.body(null, 304, headers);
    return context.body(body, 200, { ...headers, 'content-type': 'application/json' });
  });
}
