import * as z from 'zod';
import {
  type Principal,
  type KeyRepository,
  type KeyInfo,
  NewKey,
  RotateKey,
} from '../../library/access/index.ts';
import { PersonProfile, DEFAULT_TENANT, TenantId } from '../../events/index.ts';
import { Refusal } from '../refusal.ts';
import { SMALL_BODY_BYTES } from '../read-json.ts';
import { defineRoute, type RouteRequest, type RouteServer } from '../route.ts';
import { parseInput, PATH_PARAMETERS, TenantQuery } from '../schemas.ts';
import type { Troupe } from '../../library/troupe.ts';
import { checkReach, sees, tenantFor, checkScope, checkConversations } from '../permissions.ts';
import { CallerAnswer, IssuedKeyAnswer, KeyAnswer, typed } from '../answers.ts';
import { NewWebhook } from '../../library/integrations/webhook.ts';
import type {
  IssuedWebhook,
  WebhookRepository,
  WebhookInfo,
  WebhookTest,
} from '../../library/integrations/webhook-repository.ts';

const ProfileAnswer = z.object({ profile: PersonProfile.nullable() });

/**
 * What agents are told about the people who write. A caller with an author has only its own profile, other callers have all of
 * them.
 */
export const peopleRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/people/{person}',
    scopes: ['read'],
    id: 'getPerson',
    summary: 'Profile of a person; null if there is none',
    answer: ProfileAnswer,
    async handle({ caller: { principal }, params: { person: id }, troupe }) {
      checkOwn(principal, id);
      return { profile: await troupe.people.get(id) };
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/people/{person}',
    scopes: ['write'],
    id: 'setPerson',
    summary: 'Replace the profile of a person: name, time zone, preferences',
    body: PersonProfile,
    bodyBytes: SMALL_BODY_BYTES,
    example: { name: 'Ana', timeZone: 'Europe/Berlin', preferences: 'Answer in one paragraph.' },
    answer: ProfileAnswer,
    async handle({ caller: { principal }, params: { person: id }, troupe, body }) {
      checkOwn(principal, id);
      return { profile: await troupe.people.set(id, await body()) };
    },
  }),
  defineRoute({
    method: 'DELETE',
    path: '/api/people/{person}',
    scopes: ['write'],
    id: 'removePerson',
    summary: 'Remove the profile of a person; false if there was none',
    answer: z.object({ removed: z.boolean() }),
    async handle({ caller: { principal }, params: { person: id }, troupe }) {
      checkOwn(principal, id);
      return { removed: await troupe.people.remove(id) };
    },
  }),
] as const;

/**
 * A caller with a grant of certain conversations may use no profiles, because they hold in all conversations. Throws
 * `Refusal`, `event_invalid`.
 */
function checkOwn({ author, conversations }: Principal, id: string): void {
  parseInput(PATH_PARAMETERS.people.schema, id, 'id');
  if (author ? author.kind === 'user' && author.id === id : conversations === null) return;
  throw new Refusal(403, 'author_refused', 'this caller may only read and change its own profile', {
    person: id,
  });
}

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
    async handle({ caller: { principal }, query }, { root }: RouteServer) {
      const keys = await keyRepositoryFor(root, principal, query.tenant).list();
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
    async handle({ context, caller: { principal }, body }, { root }: RouteServer) {
      const { tenant, ...given } = await body();
      const key = { ...given, author: given.author ?? principal.author ?? undefined };
      checkReach(principal, key);
      const issued = await keyRepositoryFor(root, principal, tenant).create(key, principal.id);
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
    async handle(
      { context, caller: { principal }, params: { key: id }, query, body },
      { root }: RouteServer,
    ) {
      const repository = keyRepositoryFor(root, principal, query.tenant);
      const options = await body();
      checkReach(principal, await knownKey(repository, principal, id));
      const issued = await repository.rotate(id, options);
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
    async handle({ caller: { principal }, params: { key: id }, query }, { root }: RouteServer) {
      const repository = keyRepositoryFor(root, principal, query.tenant);
      await knownKey(repository, principal, id);
      const key = await repository.revoke(id);
      if (!key) throw unknownKey(id);
      return { key };
    },
  }),
] as const;

const NOT_STORED = { 'cache-control': 'no-store' };

function keyRepositoryFor(root: Troupe, principal: Principal, tenant: string | undefined): KeyRepository {
  const asked = tenantFor(principal, tenant);
  return asked === DEFAULT_TENANT ? root.keys : root.forTenant(asked).keys;
}

/** Throws the same `Refusal` for a key beyond the caller's grant as for an unknown one. */
async function knownKey(repository: KeyRepository, principal: Principal, id: string): Promise<KeyInfo> {
  const key = (await repository.list()).find((each) => each.id === id);
  if (key && sees(principal, key)) return key;
  throw unknownKey(id);
}

function unknownKey(id: string): Refusal {
  return new Refusal(404, 'key_unknown', `there is no valid key "${id}"`, { key: id });
}

const WebhookAnswer = z.object({ webhook: typed<WebhookInfo>() });

/** Webhooks of a tenant. Webhooks for conversations beyond the caller's grant are hidden. */
export const webhookRoutes = [
  defineRoute({
    method: 'GET',
    path: '/api/webhooks',
    scopes: ['admin'],
    id: 'listWebhooks',
    summary: 'Webhooks with the state of their deliveries',
    query: TenantQuery,
    answer: z.object({ webhooks: z.array(typed<WebhookInfo>()) }),
    async handle({ caller: { principal }, query }, server: RouteServer) {
      const webhooks = await webhookRepositoryFor(server, principal, query.tenant).list();
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
    async handle({ context, caller: { principal }, query, body }, server: RouteServer) {
      // The receiver of the webhook reads events.
      checkScope(principal, 'read');
      const repository = webhookRepositoryFor(server, principal, query.tenant);
      const asked = await body();
      checkConversations(principal, asked.conversations);
      return context.json(await repository.create(asked, principal.id), 201, NOT_STORED);
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
    async handle(request, server: RouteServer) {
      const { webhook } = await knownWebhook(request, server);
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
    async handle(request, server: RouteServer) {
      const { repository, webhook } = await knownWebhook(request, server);
      await repository.remove(webhook.id);
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
    async handle(request, server: RouteServer) {
      const { repository, webhook } = await knownWebhook(request, server);
      return found(await repository.test(webhook.id), webhook.id);
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
    async handle(request, server: RouteServer) {
      const { repository, webhook } = await knownWebhook(request, server);
      const issued = found(await repository.rotate(webhook.id), webhook.id);
      return request.context.json(issued, 200, NOT_STORED);
    },
  }),
] as const;

type WebhookRequest = Pick<
  RouteRequest<'/api/webhooks/{webhook}', z.output<typeof TenantQuery>, unknown>,
  'caller' | 'params' | 'query'
>;

function webhookRepositoryFor(
  { root }: RouteServer,
  principal: Principal,
  tenant: string | undefined,
): WebhookRepository {
  const asked = tenantFor(principal, tenant);
  return asked === DEFAULT_TENANT ? root.webhooks : root.forTenant(asked).webhooks;
}

/** Throws `Refusal`. */
async function knownWebhook(
  { caller: { principal }, params: { webhook: id }, query }: WebhookRequest,
  server: RouteServer,
): Promise<{ repository: WebhookRepository; webhook: WebhookInfo }> {
  const repository = webhookRepositoryFor(server, principal, query.tenant);
  const webhook = await repository.get(id);
  if (webhook && sees(principal, webhook)) return { repository, webhook };
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
