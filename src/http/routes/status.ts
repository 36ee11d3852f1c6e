import type { Hono } from 'hono';
import type { Troupe } from '../../troupe.ts';
import { type Caller, callerOf, troupeOf } from '../access/caller.ts';
import { isOfTheHouse } from '../access/check-scope.ts';
import type { ProcessMetrics } from '../metrics.ts';
import { openApiDocument } from '../openapi.ts';
import { prefixOf } from '../page.ts';
import { Refusal } from '../refusal.ts';
import { BudgetQuery, parseInput } from '../schemas.ts';

export function addStatusRoutes(app: Hono, troupe: Troupe, { keyless }: { keyless: boolean }): void {
  app.get('/api/agents', (context) => context.json({ agents: troupeOf(context).agents }));
  app.get('/api/queues', async (context) => {
    const { principal, troupe: theirs } = callerOf(context);
    const report = await theirs.queues({ own: !isOfTheHouse(principal) });
    return context.json({ failed: 0, wait: null, ...report });
  });
  app.get('/api/budgets', async (context) => {
    const of = parseInput(BudgetQuery, context.req.query(), 'the query');
    return context.json({ budgets: await troupeOf(context).budgets(of) });
  });
  app.get('/api/nostr', (context) => {
    refuseGuests(callerOf(context), 'relays are of the whole server');
    return context.json({ nostr: troupe.nostr() });
  });
  app.get('/api/openapi.json', (context) => {
    const mount = context.req.path.slice(0, -'/api/openapi.json'.length);
    const base = `${prefixOf(context.req.header('x-forwarded-prefix'))}${mount}`;
    return context.json(openApiDocument({ keyless, base }));
  });
}

export function addMetricsRoute(app: Hono, troupe: Troupe, metrics: ProcessMetrics | undefined): void {
  app.get('/metrics', async (context) => {
    refuseGuests(callerOf(context), 'these numbers are of all tenants');
    if (!metrics) throw new Refusal(404, 'route_unknown', 'this server was started without metrics');
    return context.body(await metrics.text(troupe), 200, { 'content-type': metrics.contentType });
  });
}

function refuseGuests({ principal }: Caller, why: string): void {
  if (isOfTheHouse(principal)) return;
  const message = `${why}: they are for administrators of the server`;
  throw new Refusal(403, 'scope_missing', message, { scope: 'admin' });
}
