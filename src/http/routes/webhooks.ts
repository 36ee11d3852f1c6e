import type { Context, Hono } from 'hono';
import { covers } from '../../access/index.ts';
import { DEFAULT_TENANT } from '../../events/index.ts';
import { NewWebhook } from '../../integrations/webhook.ts';
import type { WebhookBook, WebhookInfo } from '../../integrations/webhook-book.ts';
import type { Troupe } from '../../troupe.ts';
import { callerOf } from '../access/caller.ts';
import { checkScope } from '../access/check-scope.ts';
import { tenantFor } from '../access/key-rules.ts';
import { unknownConversation } from '../access/limit-troupe.ts';
import { readJson } from '../read-json.ts';
import { Refusal } from '../refusal.ts';
import { KeysQuery, parseInput } from '../schemas.ts';

/**
 * The webhooks of the caller's tenant. One that hears of more than the caller was granted is none of its business: for
 * the caller it is not there.
 */
export function addWebhookRoutes(app: Hono, root: Pick<Troupe, 'webhooks' | 'forTenant'>): void {
  function bookFor(context: Context): WebhookBook {
    const { tenant } = parseInput(KeysQuery, context.req.query(), 'the query');
    const asked = tenantFor(callerOf(context).principal, tenant);
    return asked === DEFAULT_TENANT ? root.webhooks : root.forTenant(asked).webhooks;
  }

  /** Throws `Refusal`. */
  async function find(context: Context): Promise<{ book: WebhookBook; webhook: WebhookInfo }> {
    const book = bookFor(context);
    const id = context.req.param('id') ?? '';
    const webhook = await book.get(id);
    if (webhook && beyondGrant(context, webhook) === null) return { book, webhook };
    throw unknownWebhook(id);
  }

  app.get('/api/webhooks', async (context) => {
    const webhooks = await bookFor(context).list();
    return context.json({ webhooks: webhooks.filter((each) => beyondGrant(context, each) === null) });
  });

  app.post('/api/webhooks', async (context) => {
    // What it is sent can be read.
    const { principal } = callerOf(context);
    checkScope(principal, 'read');
    const book = bookFor(context);
    const asked = parseInput(NewWebhook, await readJson(context), 'the body');
    const beyond = beyondGrant(context, asked);
    if (beyond !== null) throw unknownConversation(beyond);
    return context.json(await book.create(asked, principal.id), 201, NOT_STORED);
  });

  app.get('/api/webhooks/:id', async (context) => {
    const { webhook } = await find(context);
    return context.json({ webhook });
  });

  app.delete('/api/webhooks/:id', async (context) => {
    const { book, webhook } = await find(context);
    await book.remove(webhook.id);
    return context.json({ webhook });
  });

  app.post('/api/webhooks/:id/test', async (context) => {
    const { book, webhook } = await find(context);
    return context.json(found(await book.test(webhook.id), webhook.id));
  });

  app.post('/api/webhooks/:id/rotate', async (context) => {
    const { book, webhook } = await find(context);
    return context.json(found(await book.rotate(webhook.id), webhook.id), 200, NOT_STORED);
  });
}

const NOT_STORED = { 'cache-control': 'no-store' };

/** The first conversations that a webhook hears of and its caller may not. */
function beyondGrant(context: Context, { conversations }: Pick<WebhookInfo, 'conversations'>): string | null {
  const { principal } = callerOf(context);
  return (conversations ?? ['*']).find((pattern) => !covers(principal, pattern)) ?? null;
}

/** Another may have removed it since it was found. */
function found<T>(answer: T | null, id: string): T {
  if (answer !== null) return answer;
  throw unknownWebhook(id);
}

function unknownWebhook(id: string): Refusal {
  return new Refusal(404, 'webhook_unknown', `there is no webhook "${id}"`, { webhook: id });
}
