import * as z from 'zod';
import type { Principal } from '../../library/access/index.ts';
import { DEFAULT_TENANT } from '../../events/index.ts';
import { NewWebhook } from '../../library/integrations/webhook.ts';
import type {
  IssuedWebhook,
  WebhookBook,
  WebhookInfo,
  WebhookTest,
} from '../../library/integrations/webhook-book.ts';
import { checkScope } from '../access/check-scope.ts';
import { checkConversations, sees, tenantFor } from '../access/key-rules.ts';
import { typed } from '../answers.ts';
import { Refusal } from '../refusal.ts';
import { SMALL_BODY_BYTES } from '../read-json.ts';
import { defineRoute, type RouteRequest, type RouteServer } from '../route.ts';
import { TenantQuery } from '../schemas.ts';

const NOT_STORED = { 'cache-control': 'no-store' };
const WebhookAnswer = z.object({ webhook: typed<WebhookInfo>() });

/** Webhooks of a tenant. Webhooks for conversations beyond the caller's grant are hidden from it. */
export const webhookRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/webhooks',
    scopes: ['admin'],
    id: 'listWebhooks',
    summary: 'Webhooks with the state of their deliveries',
    query: TenantQuery,
    answer: z.object({ webhooks: z.array(typed<WebhookInfo>()) }),
    async handle({ caller: { principal }, query }, server) {
      const webhooks = await bookFor(server, principal, query.tenant).list();
      return { webhooks: webhooks.filter((each) => sees(principal, each)) };
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/webhooks',
    scopes: ['admin'],
    id: 'createWebhook',
    summary: 'Create a webhook; its secret is only in this answer',
    query: TenantQuery,
    body: NewWebhook,
    bodyBytes: SMALL_BODY_BYTES,
    example: { url: 'https://hooks.example/troupe', on: ['message'] },
    status: 201,
    answer: typed<IssuedWebhook>(),
    gives: { webhooks: '/webhook/id' },
    async handle({ context, caller: { principal }, query, body }, server) {
      // The receiver reads events.
      checkScope(principal, 'read');
      const book = bookFor(server, principal, query.tenant);
      const asked = await body();
      checkConversations(principal, asked.conversations);
      return context.json(await book.create(asked, principal.id), 201, NOT_STORED);
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/webhooks/{webhook}',
    scopes: ['admin'],
    id: 'getWebhook',
    summary: 'A webhook with the state of its deliveries',
    query: TenantQuery,
    answer: WebhookAnswer,
    async handle(request, server) {
      const { webhook } = await find(request, server);
      return { webhook };
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/webhooks/{webhook}',
    scopes: ['admin'],
    id: 'deleteWebhook',
    summary: 'Remove a webhook',
    query: TenantQuery,
    answer: WebhookAnswer,
    async handle(request, server) {
      const { book, webhook } = await find(request, server);
      await book.remove(webhook.id);
      return { webhook };
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/webhooks/{webhook}/test',
    scopes: ['admin'],
    id: 'testWebhook',
    summary: 'Send a ping now and report the answer',
    query: TenantQuery,
    answer: typed<WebhookTest>(),
    async handle(request, server) {
      const { book, webhook } = await find(request, server);
      return found(await book.test(webhook.id), webhook.id);
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/webhooks/{webhook}/rotate',
    scopes: ['admin'],
    id: 'rotateWebhook',
    summary: 'Create a new secret; the old one also signs for 24 hours',
    query: TenantQuery,
    answer: typed<IssuedWebhook>(),
    async handle(request, server) {
      const { book, webhook } = await find(request, server);
      const issued = found(await book.rotate(webhook.id), webhook.id);
      return request.context.json(issued, 200, NOT_STORED);
    },
  }),
] as const;

type WebhookRequest = Pick<
  RouteRequest<'/api/webhooks/{webhook}', z.output<typeof TenantQuery>, unknown>,
  'caller' | 'params' | 'query'
>;

function bookFor({ root }: RouteServer, principal: Principal, tenant: string | undefined): WebhookBook {
  const asked = tenantFor(principal, tenant);
  return asked === DEFAULT_TENANT ? root.webhooks : root.forTenant(asked).webhooks;
}

/** Throws `Refusal`. */
async function find(
  { caller: { principal }, params: { webhook: id }, query }: WebhookRequest,
  server: RouteServer,
): Promise<{ book: WebhookBook; webhook: WebhookInfo }> {
  const book = bookFor(server, principal, query.tenant);
  const webhook = await book.get(id);
  if (webhook && sees(principal, webhook)) return { book, webhook };
  throw unknownWebhook(id);
}

/** Another request may have removed the webhook since it was found. */
function found<T>(answer: T | null, id: string): T {
  if (answer !== null) return answer;
  throw unknownWebhook(id);
}

function unknownWebhook(id: string): Refusal {
  return new Refusal(404, 'webhook_unknown', `there is no webhook "${id}"`, { webhook: id });
}
