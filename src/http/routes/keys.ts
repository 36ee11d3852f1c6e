import type { Context, Hono } from 'hono';
import type { KeyBook, KeyInfo } from '../../access/index.ts';
import { DEFAULT_TENANT } from '../../events/index.ts';
import type { Troupe } from '../../troupe.ts';
import { callerOf } from '../access/caller.ts';
import { checkReach, sees, tenantFor } from '../access/key-rules.ts';
import { readJson } from '../read-json.ts';
import { Refusal } from '../refusal.ts';
import { KeysQuery, NewKeyBody, parseInput, RotateKeyBody } from '../schemas.ts';

/**
 * Who the caller is, and the keys of its tenant. The text of a key is in the answer that makes it, which nothing stores
 * on its way, and nowhere else.
 */
export function addKeyRoutes(app: Hono, root: Troupe): void {
  function bookFor(context: Context, tenant: string | undefined): KeyBook {
    const asked = tenantFor(callerOf(context).principal, tenant);
    return asked === DEFAULT_TENANT ? root.keys : root.forTenant(asked).keys;
  }

  function askedBook(context: Context): KeyBook {
    return bookFor(context, parseInput(KeysQuery, context.req.query(), 'the query').tenant);
  }

  /** Throws `Refusal` for one that is not the caller's business, as for one that is not there. */
  async function find(context: Context, book: KeyBook, id: string): Promise<KeyInfo> {
    const key = (await book.list()).find((each) => each.id === id);
    if (key && sees(callerOf(context).principal, key)) return key;
    throw unknownKey(id);
  }

  app.get('/api/whoami', (context) => {
    const { id, tenant, scopes, author, conversations } = callerOf(context).principal;
    return context.json({ id, tenant, scopes, author, conversations });
  });

  app.get('/api/keys', async (context) => {
    const keys = await askedBook(context).list();
    return context.json({ keys: keys.filter((key) => sees(callerOf(context).principal, key)) });
  });

  app.post('/api/keys', async (context) => {
    const { principal } = callerOf(context);
    const body = parseInput(NewKeyBody, await readJson(context), 'the body');
    const { tenant, ...given } = body;
    const key = { ...given, author: given.author ?? principal.author ?? undefined };
    checkReach(principal, key);
    return context.json(await bookFor(context, tenant).create(key, principal.id), 201, NOT_STORED);
  });

  app.post('/api/keys/:id/rotate', async (context) => {
    const book = askedBook(context);
    const id = context.req.param('id');
    const options = parseInput(RotateKeyBody, await readJson(context), 'the body');
    checkReach(callerOf(context).principal, await find(context, book, id));
    const issued = await book.rotate(id, options);
    if (!issued) throw unknownKey(id);
    return context.json(issued, 200, NOT_STORED);
  });

  app.delete('/api/keys/:id', async (context) => {
    const book = askedBook(context);
    const id = context.req.param('id');
    await find(context, book, id);
    const key = await book.revoke(id);
    if (!key) throw unknownKey(id);
    return context.json({ key });
  });
}

const NOT_STORED = { 'cache-control': 'no-store' };

function unknownKey(id: string): Refusal {
  return new Refusal(404, 'key_unknown', `there is no key "${id}" that opens anything`, { key: id });
}
