import { serve } from '@hono/node-server';
import { Command } from 'commander';
import { Hono } from 'hono';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { LOCAL, type Principal, Traffic } from '../../src/library/access/index.ts';
import { createHttpClient } from '../../src/cli/client/http-client.ts';
import { addWebhookCommands } from '../../src/cli/program.ts';
import type { TenantId } from '../../src/events/index.ts';
import { setCaller } from '../../src/http/caller.ts';
import { errorResponse } from '../../src/http/refusal.ts';
import { addRoutes, type RouteServer } from '../../src/http/route.ts';
import { webhookRoutes } from '../../src/http/routes/tenant.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { startReceiver } from './receiver.ts';
import { openStage, type Stage } from './stage.ts';
import { untilHolds } from '../support/until-holds.ts';

const TENANTS = ['default', 'acme'] as const;

/** The routes behind a guard that accepts every caller as `principal`. */
function routesOf(stage: Stage, principal: Partial<Principal> = {}): Hono {
  const troupeOf = (tenant: string) =>
    ({ webhooks: stage.repository(tenant), forTenant: troupeOf }) as unknown as Troupe;
  const root = troupeOf('default');
  const app = new Hono();
  const traffic = new Traffic({}, stage.clock);
  app.use(async (context, next) => {
    setCaller(context, {
      principal: { ...LOCAL, ...principal },
      troupe: root,
      isStillGood: null,
      parked: () => undefined,
      reading: null,
      traffic,
    });
    await next();
  });
  addRoutes(app, webhookRoutes, { root } as RouteServer);
  app.onError((error, context) => errorResponse(context, error, () => {}));
  return app;
}

async function ask(app: Hono, method: string, path: string, body?: object) {
  const init = {
    method,
    ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  };
  const response = await app.request(path, init);
  return {
    status: response.status,
    body: (await response.json()) as Record<string, never>,
    headers: response.headers,
  };
}

test('a webhook is created, shown, tested, rotated and removed', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] }, TENANTS);
  const app = routesOf(stage);
  const made = await ask(app, 'POST', '/api/webhooks', { url: receiver.url, on: ['message', 'turn.failed'] });
  expect([made.status, made.headers.get('cache-control')]).toEqual([201, 'no-store']);
  const { webhook, secret } = made.body as unknown as { webhook: { id: string }; secret: string };
  const path = `/api/webhooks/${webhook.id}`;
  const shown = await ask(app, 'GET', path);
  expect(shown.body).toMatchObject({
    webhook: { id: webhook.id, on: ['message', 'turn.failed'], status: { delivered: 0 } },
  });
  expect((await ask(app, 'GET', '/api/webhooks')).body).toEqual({ webhooks: [shown.body['webhook']] });
  expect((await ask(app, 'POST', `${path}/test`)).body).toMatchObject({ ok: true, status: 204 });
  const rotated = await ask(app, 'POST', `${path}/rotate`);
  expect(rotated.body['secret']).not.toBe(secret);
  expect(JSON.stringify((await ask(app, 'GET', path)).body)).not.toContain('whsec_');
  expect((await ask(app, 'DELETE', path)).status).toBe(200);
  expect((await ask(app, 'GET', '/api/webhooks')).body).toEqual({ webhooks: [] });
});

test('a webhook of another tenant, or outside the grant of the caller, is answered like an unknown one', async () => {
  await using stage = openStage({}, TENANTS);
  const url = 'https://example.org/';
  const { webhook: ours } = await stage.repository('default').create({ url, on: ['*'] });
  const { webhook: granted } = await stage
    .repository('acme')
    .create({ url, on: ['*'], conversations: ['shop-1'] });
  const { webhook: beyond } = await stage.repository('acme').create({ url, on: ['*'] });
  const app = routesOf(stage, { id: 'key:k', tenant: 'acme' as TenantId, conversations: ['shop-*'] });
  for (const [method, act] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/test'],
    ['POST', '/rotate'],
  ] as const) {
    for (const id of ['nonsense', ours.id, beyond.id, '%24where', '__proto__']) {
      const { status, body } = await ask(app, method, `/api/webhooks/${id}${act}`);
      expect([status, JSON.stringify(body).replaceAll(decodeURIComponent(id), 'ID')]).toEqual([
        404,
        '{"error":{"code":"webhook_unknown","message":"there is no webhook \\"ID\\"","data":{"webhook":"ID"}}}',
      ]);
    }
  }
  expect((await ask(app, 'GET', '/api/webhooks')).body).toMatchObject({ webhooks: [{ id: granted.id }] });
  expect((await ask(app, 'GET', '/api/webhooks?tenant=default')).status).toBe(403);
  for (const conversations of [undefined, ['shop-1', 'plan'], ['*']]) {
    const { status } = await ask(app, 'POST', '/api/webhooks', {
      url,
      on: ['*'],
      ...(conversations && { conversations }),
    });
    expect(status).toBe(404);
  }
  expect(
    (await stage.repository('default').list()).length + (await stage.repository('acme').list()).length,
  ).toBe(3);
});

test.each([
  [{ on: ['message'] }, 400, 'event_invalid'],
  [{ url: 'https://example.org/', on: ['nothing'] }, 400, 'event_invalid'],
  [{ url: { $gt: '' }, on: ['*'] }, 400, 'event_invalid'],
  [{ url: 'https://example.org/', on: ['*'], id: 'mine' }, 400, 'event_invalid'],
])('%j is refused with %i', async (body, status, code) => {
  await using stage = openStage();
  const answer = await ask(routesOf(stage), 'POST', '/api/webhooks', body);
  expect([answer.status, answer.body]).toMatchObject([status, { error: { code } }]);
});

test('the client of the command line does the same over HTTP', async () => {
  await using receiver = await startReceiver();
  await using stage = openStage({ allow: [receiver.host] }, TENANTS);
  const server = serve({ fetch: routesOf(stage).fetch, port: 0, hostname: '127.0.0.1' });
  onTestFinished(() => void server.close());
  await untilHolds(() => expect(server.address()).not.toBeNull());
  const { webhooks } = createHttpClient(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    undefined,
  );
  const { webhook, secret } = await webhooks.create({ url: receiver.url, on: ['message'] }, 'acme');
  expect(await webhooks.list(undefined)).toEqual([]);
  expect(await webhooks.list('acme')).toEqual([webhook]);
  expect(await webhooks.test(webhook.id, 'acme')).toMatchObject({ ok: true });
  expect((await webhooks.rotate(webhook.id, 'acme')).secret).not.toBe(secret);
  expect((await webhooks.remove(webhook.id, 'acme')).id).toBe(webhook.id);
  await expect(webhooks.test(webhook.id, 'acme')).rejects.toThrow(`there is no webhook "${webhook.id}"`);
});

test('the help of the commands fits on a screen', () => {
  const program = new Command('troupe');
  addWebhookCommands(program, (command) => command.option('--json', 'machine-readable output'));
  const group = program.commands.find((command) => command.name() === 'webhooks');
  const helps = [group, ...(group?.commands ?? [])].map((command) => command?.helpInformation() ?? '');
  expect(group?.commands.map((command) => command.name())).toEqual(['create', 'ls', 'rm', 'test', 'rotate']);
  for (const help of helps) {
    expect(help.trimEnd().split('\n').length).toBeLessThanOrEqual(21);
    expect(Math.max(...help.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(110);
  }
});
