import * as z from 'zod';
import { type KeyBook, type KeyInfo, NewKey, type Principal, RotateKey } from '../../library/access/index.ts';
import { DEFAULT_TENANT, TenantId } from '../../events/index.ts';
import type { Troupe } from '../../library/troupe.ts';
import { checkReach, sees, tenantFor } from '../access/key-rules.ts';
import { CallerAnswer, IssuedKeyAnswer, KeyAnswer } from '../answers.ts';
import { Refusal } from '../refusal.ts';
import { SMALL_BODY_BYTES } from '../read-json.ts';
import { defineRoute } from '../route.ts';
import { TenantQuery } from '../schemas.ts';

/** The caller, and the API keys of a tenant. Only the answer that issues a key contains its secret, which is not stored. */
export const keyRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/whoami',
    scopes: [],
    id: 'getCaller',
    summary: 'Identity and permissions of the caller',
    answer: CallerAnswer,
    handle({ caller }) {
      const { id, tenant, scopes, author, conversations } = caller.principal;
      return { id, tenant, scopes: [...scopes], author, conversations: conversations && [...conversations] };
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/keys',
    scopes: ['admin'],
    id: 'listKeys',
    summary: 'Keys of a tenant, without their secrets',
    query: TenantQuery,
    answer: z.object({ keys: z.array(KeyAnswer) }),
    async handle({ caller: { principal }, query }, { root }) {
      const keys = await bookFor(root, principal, query.tenant).list();
      return { keys: keys.filter((key) => sees(principal, key)) };
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/keys',
    scopes: ['admin'],
    id: 'createKey',
    summary: 'Create a key; its secret is only in this answer',
    body: NewKey.extend({ tenant: TenantId.optional() }),
    bodyBytes: SMALL_BODY_BYTES,
    example: { name: 'dashboard', scopes: ['read'] },
    status: 201,
    answer: IssuedKeyAnswer,
    gives: { keys: '/key/id', tenant: '/key/tenant' },
    async handle({ context, caller: { principal }, body }, { root }) {
      const { tenant, ...given } = await body();
      const key = { ...given, author: given.author ?? principal.author ?? undefined };
      checkReach(principal, key);
      const issued = await bookFor(root, principal, tenant).create(key, principal.id);
      return context.json(issued, 201, NOT_STORED);
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/keys/{key}/rotate',
    scopes: ['admin'],
    id: 'rotateKey',
    summary: 'Create a new secret for a key; the old one stays valid for `graceMs`',
    query: TenantQuery,
    body: RotateKey,
    bodyBytes: SMALL_BODY_BYTES,
    answer: IssuedKeyAnswer,
    async handle({ context, caller: { principal }, params: { key: id }, query, body }, { root }) {
      const book = bookFor(root, principal, query.tenant);
      const options = await body();
      checkReach(principal, await find(book, principal, id));
      const issued = await book.rotate(id, options);
      if (!issued) throw unknownKey(id);
      return context.json(issued, 200, NOT_STORED);
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/keys/{key}',
    scopes: ['admin'],
    id: 'revokeKey',
    summary: 'Revoke a key; its streams end within 5 seconds',
    query: TenantQuery,
    answer: z.object({ key: KeyAnswer }),
    async handle({ caller: { principal }, params: { key: id }, query }, { root }) {
      const book = bookFor(root, principal, query.tenant);
      await find(book, principal, id);
      const key = await book.revoke(id);
      if (!key) throw unknownKey(id);
      return { key };
    },
  }),
] as const;

const NOT_STORED = { 'cache-control': 'no-store' };

function bookFor(root: Troupe, principal: Principal, tenant: string | undefined): KeyBook {
  const asked = tenantFor(principal, tenant);
  return asked === DEFAULT_TENANT ? root.keys : root.forTenant(asked).keys;
}

/** Throws the same `Refusal` for a key that reaches beyond the caller's grant as for an unknown one. */
async function find(book: KeyBook, principal: Principal, id: string): Promise<KeyInfo> {
  const key = (await book.list()).find((each) => each.id === id);
  if (key && sees(principal, key)) return key;
  throw unknownKey(id);
}

function unknownKey(id: string): Refusal {
  return new Refusal(404, 'key_unknown', `there is no valid key "${id}"`, { key: id });
}
