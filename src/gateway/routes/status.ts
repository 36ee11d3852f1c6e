import type { Hono } from 'hono';
import type { Troupe } from '../../troupe.ts';
import { openApiDocument } from '../openapi.ts';

export function addStatusRoutes(app: Hono, troupe: Troupe): void {
  app.get('/api/agents', (context) => context.json({ agents: troupe.agents }));
  app.get('/api/queues', async (context) => context.json(await troupe.queues()));
  app.get('/api/openapi.json', (context) => context.json(openApiDocument()));
  app.get('/healthz', async (context) => {
    // A store that cannot be read answers with its error instead.
    await troupe.conversations(1);
    return context.json({ status: 'ok' });
  });
}
