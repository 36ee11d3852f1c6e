import * as z from 'zod';
import { ConversationId } from '../../events/index.ts';
import type { Chart, Transitions } from '../../library/projection/chart.ts';
import { CHARTS } from '../../library/projection/charts.ts';
import type { AgentInfo, BudgetLine, StuckReport, Troupe } from '../../library/troupe.ts';
import type { Caller } from '../caller.ts';
import { isServerAdmin } from '../permissions.ts';
import { QueuesAnswer, ReadinessAnswer, typed } from '../answers.ts';
import { waitAWhile } from '../inbox.ts';
import { prefixBefore } from '../page/page.ts';
import { Refusal } from '../refusal.ts';
import { defineRoute, type RouteServer } from '../route.ts';
import { Flag, limitOf, Seq } from '../schemas.ts';

const DRAWN = chartsAnswer(CHARTS);
const UNDRAWN = chartsAnswer(
  Object.fromEntries(Object.entries<Chart>(CHARTS).map(([name, chart]) => [name, transitionsOf(chart)])),
);

function transitionsOf({ edges, anywhere }: Chart): Transitions {
  return { edges: edges.map(({ from, to, event, guard }) => ({ from, to, event, guard })), anywhere };
}

/** The tag is weak, because it names the content in whatever compression. */
function chartsAnswer(charts: Record<string, Transitions>) {
  const hashes = Object.values(CHARTS).map(({ hash }) => hash);
  const body = JSON.stringify({ charts });
  return { body, etag: `W/"${hashes.join('-')}-${body.length}"` };
}

export const statusRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/agents',
    scopes: ['read'],
    id: 'listAgents',
    summary: 'All configured agents',
    answer: z.object({ agents: z.array(typed<AgentInfo>()) }),
    handle: ({ troupe }) => ({ agents: [...troupe.agents] }),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/budgets',
    scopes: ['read'],
    id: 'listBudgets',
    summary: 'Amounts spent and reserved of each budget in its current period',
    query: z.object({ conversation: ConversationId.optional(), agent: z.string().optional() }),
    answer: z.object({ budgets: z.array(typed<BudgetLine>()) }),
    handle: async ({ troupe, query }) => ({ budgets: await troupe.budgets(query) }),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/charts',
    scopes: ['read'],
    id: 'getCharts',
    summary:
      'State machines of agents and compactions with their layouts, without `drawn` their transitions alone; with an etag',
    query: z.object({ drawn: Flag.default(true) }),
    answer: z.object({ charts: typed<Record<string, Chart | Transitions>>() }),
    also: { 304: {} },
    headers: ['etag'],
    handle({ context, query }) {
      const { body, etag } = query.drawn ? DRAWN : UNDRAWN;
      const headers = { etag, 'cache-control': 'no-cache' };
      if (context.req.header('if-none-match') === etag) return context.body(null, 304, headers);
      return context.body(body, 200, { ...headers, 'content-type': 'application/json' });
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/queues',
    scopes: ['read'],
    id: 'getQueues',
    summary:
      'Who runs and who waits for what, the oldest first; number of waiting, active and delayed wakes; waiting times of those that wait and of the last 1,000 wakes that this process took within 5 minutes, and its failures',
    answer: QueuesAnswer,
    async handle({ caller: { principal, troupe } }) {
      const report = await troupe.queues({ own: !isServerAdmin(principal) });
      return { failed: 0, wait: null, ...report };
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/stuck',
    scopes: ['read'],
    id: 'listStuck',
    summary:
      'Work that has not gone on for long, the longest first: silent models, long tools, failing calls, agents that wait for a slot; then questions and approvals that no person has answered. `after`: age in ms instead of the defaults',
    query: z.object({
      after: Seq.optional(),
      limit: limitOf(1_000).default(100),
    }),
    answer: typed<StuckReport>(),
    async handle({ context, troupe, query: { after, limit } }, { keeperOf, clock }: RouteServer) {
      await waitAWhile(keeperOf(context), clock);
      return troupe.stuck({ afterMs: after, limit });
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/nostr',
    scopes: ['admin'],
    id: 'getRelays',
    summary: 'Relays that this process holds; for server administrators',
    answer: z.object({ nostr: typed<ReturnType<Troupe['nostr']>>({ type: ['object', 'null'] }) }),
    handle({ caller }, { root }: RouteServer) {
      requireServerAdmin(caller, 'relays belong to the whole server');
      return { nostr: root.nostr() };
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/openapi.json',
    scopes: ['read'],
    id: null,
    summary: 'This document',
    handle({ context }, { describe }: RouteServer) {
      const mount = context.req.path.slice(0, -'/api/openapi.json'.length);
      const bytes = bytesOf(describe, `${prefixBefore(context)}${mount}`);
      return context.body(bytes, 200, { 'content-type': 'application/json' });
    },
  }),
] as const;

/** The last document of each app: a third of a megabyte takes milliseconds to write, and its base seldom changes. */
const DOCUMENTS = new WeakMap<object, { base: string; bytes: Uint8Array<ArrayBuffer> }>();

function bytesOf(describe: (base: string) => object, base: string): Uint8Array<ArrayBuffer> {
  const last = DOCUMENTS.get(describe);
  if (last?.base === base) return last.bytes;
  const bytes = new TextEncoder().encode(JSON.stringify(describe(base)));
  DOCUMENTS.set(describe, { base, bytes });
  return bytes;
}

export const metricsRoute = defineRoute({
  method: 'GET',
  path: '/metrics',
  scopes: ['admin'],
  id: 'getMetrics',
  summary: 'Metrics in Prometheus text format',
  answerType: 'text/plain',
  errors: [404],
  async handle({ context, caller }, { root, metrics }: RouteServer) {
    requireServerAdmin(caller, 'metrics cover all tenants');
    if (!metrics) throw new Refusal(404, 'route_unknown', 'this server was started without metrics');
    return context.body(await metrics.text(root), 200, { 'content-type': metrics.contentType });
  },
});

/**
 * Probes of orchestrators and load balancers, most of which send no token and use another host name. They are answered before
 * the guard. Only server administrators learn more than that the process is alive and whether it is ready.
 *  - `/healthz` checks no service: restarting every process does not bring back a database.
 *  - `/readyz` reports whether to send work here.
 */
export const probeRoutes = [
  defineRoute({
    method: 'GET',
    path: '/healthz',
    scopes: 'public',
    id: 'getHealth',
    summary: 'Whether the process is alive; checks no service and needs no token',
    answer: z.object({ status: z.literal('ok') }),
    handle: () => ({ status: 'ok' as const }),
  }),
  defineRoute({
    method: 'GET',
    path: '/readyz',
    scopes: 'public',
    id: 'getReadiness',
    summary:
      'Whether store and queue are reachable and the process is not stopping; otherwise 503. Needs no token',
    answer: ReadinessAnswer,
    also: { 503: { schema: ReadinessAnswer } },
    async handle({ context }, { readiness, trustedCaller }: RouteServer) {
      const { status, store, queue } = await readiness();
      const caller = await trustedCaller(context);
      const report = caller && isServerAdmin(caller) ? { status, store, queue } : { status };
      if (status === 'ok') return report;
      return context.json(report, 503, { 'retry-after': '1' });
    },
  }),
] as const;

function requireServerAdmin({ principal }: Caller, why: string): void {
  if (isServerAdmin(principal)) return;
  const message = `${why}: only server administrators may read them`;
  throw new Refusal(403, 'scope_missing', message, { scope: 'admin' });
}
