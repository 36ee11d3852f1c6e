import { Hono } from 'hono';
import { expect, test } from 'vitest';
import type { NewKey, Scope } from '../../src/library/access/index.ts';
import { openApiDocument } from '../../src/http/api/index.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import { describedPath, routeName } from '../../src/http/route.ts';
import { routeTable } from '../../src/http/routes/index.ts';
import { DOORS } from '../../src/library/integrations/door.ts';
import { openDoors } from '../../src/library/runtime/doors.ts';
import { startGuarded, withKey } from './access.ts';
import { ANA, startApi } from './harness.ts';

const doors = await openDoors(DOORS);
const { routes: ROUTES, rules } = routeTable(doors);
const PUBLIC_ROUTES = new Set(ROUTES.filter(({ scopes }) => scopes === 'public').map(routeName));

/** Written out, so that a scope changed by mistake is not compared with itself. */
const SCOPES: Readonly<Record<string, readonly Scope[]>> = {
  'GET /api/conversations': ['read'],
  'GET /api/costs': ['read'],
  'GET /api/inbox': ['read'],
  'GET /api/search': ['read'],
  'GET /api/conversations/{conversation}': ['read'],
  'POST /api/conversations/{conversation}/events': ['write'],
  'GET /api/conversations/{conversation}/events': ['read'],
  'GET /api/conversations/{conversation}/integrity': ['read'],
  'GET /api/conversations/{conversation}/actors': ['read'],
  'GET /api/conversations/{conversation}/answer': ['read'],
  'GET /api/conversations/{conversation}/snapshot': ['read'],
  'GET /api/conversations/{conversation}/rows': ['read'],
  'GET /api/conversations/{conversation}/times': ['read'],
  'GET /api/conversations/{conversation}/tree': ['read'],
  'GET /api/conversations/{conversation}/tasks': ['read'],
  'GET /api/conversations/{conversation}/agents/{agent}/prompt': ['read'],
  'GET /api/conversations/{conversation}/agents/{agent}/cache-cost': ['read'],
  'GET /api/conversations/{conversation}/cost': ['read'],
  'DELETE /api/conversations/{conversation}': ['operate'],
  'POST /api/erasures': ['erase'],
  'GET /api/conversations/{conversation}/export': ['read'],
  'GET /api/conversations/{conversation}/attachment': ['read'],
  'GET /api/turns/{turn}': ['read'],
  'GET /api/turns/{turn}/prompt': ['read'],
  'GET /api/turns/{turn}/diff/{other}': ['read'],
  'GET /api/turns/{turn}/compare/{other}': ['read'],
  'POST /api/commands': ['write', 'operate'],
  'GET /api/events': ['read'],
  'POST /api/conversations/{conversation}/chat': ['write'],
  'GET /api/conversations/{conversation}/chat': ['read'],
  'GET /api/conversations/{conversation}/chat/stream': ['read'],
  'GET /api/conversations/{conversation}/chat/{chat}/stream': ['read'],
  'POST /api/ag-ui': ['write'],
  'POST /api/conversations/{conversation}/ag-ui': ['write'],
  'POST /api/mcp': ['read', 'write'],
  'GET /api/a2a/{agent}/.well-known/agent-card.json': ['read', 'write'],
  'GET /api/a2a/.well-known/jwks.json': ['read', 'write'],
  'POST /api/a2a/{agent}': ['read', 'write'],
  'POST /api/a2a/{agent}/': ['read', 'write'],
  'POST /api/a2a/{agent}/message:send': ['read', 'write'],
  'POST /api/a2a/{agent}/message:stream': ['read', 'write'],
  'GET /api/a2a/{agent}/extendedAgentCard': ['read', 'write'],
  'GET /api/a2a/{agent}/tasks': ['read', 'write'],
  'POST /api/a2a/{agent}/tasks/{task}:cancel': ['read', 'write'],
  'POST /api/a2a/{agent}/tasks/{task}:subscribe': ['read', 'write'],
  'GET /api/a2a/{agent}/tasks/{task}:subscribe': ['read', 'write'],
  'GET /api/a2a/{agent}/tasks/{task}': ['read', 'write'],
  'POST /api/a2a/{agent}/tasks/{task}/pushNotificationConfigs': ['read', 'write'],
  'GET /api/a2a/{agent}/tasks/{task}/pushNotificationConfigs': ['read', 'write'],
  'GET /api/a2a/{agent}/tasks/{task}/pushNotificationConfigs/{notification}': ['read', 'write'],
  'DELETE /api/a2a/{agent}/tasks/{task}/pushNotificationConfigs/{notification}': ['read', 'write'],
  'POST /api/v1/chat/completions': ['write'],
  'POST /api/conversations/{conversation}/v1/chat/completions': ['write'],
  'POST /api/v1/responses': ['write'],
  'POST /api/conversations/{conversation}/v1/responses': ['write'],
  'GET /api/v1/models': ['read', 'write'],
  'GET /api/conversations/{conversation}/v1/models': ['read', 'write'],
  'GET /api/v1/models/{model}': ['read', 'write'],
  'GET /api/conversations/{conversation}/v1/models/{model}': ['read', 'write'],
  'GET /api/v1/responses/{response}': ['read'],
  'GET /api/conversations/{conversation}/v1/responses/{response}': ['read'],
  'GET /api/v1/responses/{response}/input_items': ['read'],
  'GET /api/conversations/{conversation}/v1/responses/{response}/input_items': ['read'],
  'POST /api/import': ['write'],
  'GET /api/agents': ['read'],
  'GET /api/budgets': ['read'],
  'GET /api/charts': ['read'],
  'GET /api/queues': ['read'],
  'GET /api/stuck': ['read'],
  'GET /api/openapi.json': ['read'],
  'GET /api/whoami': [],
  'GET /api/people/{person}': ['read'],
  'POST /api/people/{person}': ['write'],
  'DELETE /api/people/{person}': ['write'],
  'GET /api/keys': ['admin'],
  'POST /api/keys': ['admin'],
  'POST /api/keys/{key}/rotate': ['admin'],
  'DELETE /api/keys/{key}': ['admin'],
  'GET /api/webhooks': ['admin'],
  'POST /api/webhooks': ['admin'],
  'GET /api/webhooks/{webhook}': ['admin'],
  'DELETE /api/webhooks/{webhook}': ['admin'],
  'POST /api/webhooks/{webhook}/test': ['admin'],
  'POST /api/webhooks/{webhook}/rotate': ['admin'],
  'GET /api/nostr': ['admin'],
  'GET /metrics': ['admin'],
};

/** The routes of the app, as `METHOD /path/{name}`. */
async function routesOf(): Promise<string[]> {
  await using api = await startApi();
  return api.app.routes
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method} ${describedPath(path)}`);
}

test('every route has a scope, and the table has no other entries', async () => {
  const routes = (await routesOf()).filter((route) => !PUBLIC_ROUTES.has(route));
  expect(Object.keys(SCOPES).toSorted()).toEqual([...new Set(routes)].toSorted());
  const scopes = Object.entries(rules).map(([route, rule]) => [route, rule.scopes]);
  expect(Object.fromEntries(scopes)).toEqual(SCOPES);
  expect([...PUBLIC_ROUTES]).toEqual(['GET /healthz', 'GET /readyz']);
});

test('a route without a scope answers no request', async () => {
  await using api = await startGuarded();
  const house = await withKey(api);
  api.app.get('/api/later', (context) => context.text('a secret'));
  const { status, body } = await house.get('/api/later');
  expect(status).toBe(500);
  expect(JSON.stringify(body)).not.toContain('a secret');
  expect(String(api.errors)).toContain('GET /api/later has no scope');
});

test('the document lists the scopes of every route', () => {
  const { paths, components } = openApiDocument({ doors }) as {
    paths: Record<string, Record<string, Record<string, unknown>>>;
    components: { securitySchemes: object };
  };
  expect(components.securitySchemes).toMatchObject({ bearer: { type: 'http', scheme: 'bearer' } });
  // The document gives parameters longer names, for generators of clients.
  const unnamed = (route: string) => route.replaceAll(/\{\w+\}/g, '{}');
  const scopes = new Map(Object.entries(SCOPES).map(([route, each]) => [unnamed(route), each]));
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const route = `${method.toUpperCase()} ${path}`;
      const isPublic = PUBLIC_ROUTES.has(route);
      expect([route, operation['security']]).toEqual([route, isPublic ? [] : [{ bearer: [] }]]);
      if (!isPublic)
        expect([route, operation['x-troupe-scopes']]).toEqual([route, scopes.get(unnamed(route))]);
    }
  }
});

test('without a credential every route answers 401, and the probes reveal little', async () => {
  await using api = await startGuarded();
  for (const route of await routesOf()) {
    const [method = '', path = ''] = route.split(' ');
    const { status } = await api.get(path.replaceAll(/\{\w+\}/g, 'x'), { method });
    expect([route, status]).toEqual([route, PUBLIC_ROUTES.has(route) ? 200 : 401]);
  }
  expect((await api.get('/readyz')).body).toEqual({ status: 'ok' });
  expect((await api.get('/api/nope')).status).toBe(401);
});

test('a caller without the scope is refused by every route with its name, and nothing changes', async () => {
  await using api = await startGuarded({ metrics: createMetrics({ version: 'test' }) });
  await api.troupe.send('c1', { author: ANA, content: 'x' });
  const weak = {
    read: await withKey(api, { scopes: ['write', 'operate', 'admin', 'erase'] }),
    write: await withKey(api, { scopes: ['read', 'operate', 'admin'] }),
    operate: await withKey(api, { scopes: ['read', 'write', 'admin'] }),
    admin: await withKey(api, { scopes: ['read', 'write', 'operate', 'erase'] }),
    erase: await withKey(api, { scopes: ['read', 'write', 'operate', 'admin'] }),
  };
  const before = JSON.stringify([await api.troupe.events('c1'), await api.troupe.keys.list()]);
  for (const [route, needs] of Object.entries(SCOPES)) {
    const [scope] = needs;
    const [method = '', path = ''] = route.split(' ');
    if (scope === undefined || needs.length > 1) continue;
    const at = path.replaceAll(/\{\w+\}/g, 'c1');
    const { status, body } = await api.get(at, { method, headers: weak[scope].headers });
    expect([route, status, body]).toMatchObject([
      route,
      403,
      { error: { code: 'scope_missing', data: { scope } } },
    ]);
  }
  expect(JSON.stringify([await api.troupe.events('c1'), await api.troupe.keys.list()])).toBe(before);
});

test.each([
  [{ command: 'answer', conversation: 'c1', question: 'q', content: 'x' }, 'write'],
  [{ command: 'decide', conversation: 'c1', request: 'r', approved: true }, 'write'],
  [{ command: 'cancelTask', conversation: 'c1', task: 't' }, 'write'],
  [{ command: 'pause', conversation: 'c1', agent: 'echo' }, 'operate'],
  [{ command: 'archive', conversation: 'c1' }, 'operate'],
  [{ command: 'dispatch', conversation: 'c1', event: 'e' }, 'operate'],
  [{ command: 'fork', conversation: 'c1', seq: 1 }, 'operate'],
] as const)('%o needs the one scope that it needs', async (command, scope) => {
  await using api = await startGuarded();
  const other = scope === 'write' ? 'operate' : 'write';
  const without = await withKey(api, { scopes: ['read', other, 'admin'] });
  const refused = await without.post('/api/commands', command);
  expect([refused.status, refused.body]).toMatchObject([
    403,
    { error: { code: 'scope_missing', data: { scope } } },
  ]);
  const having = await withKey(api, { scopes: [scope] });
  const answer = await having.post('/api/commands', command);
  expect(answer.body).toMatchObject({ error: { code: 'conversation_unknown' } });
});

test('messages have the author of the key, or any person if it has none', async () => {
  await using api = await startGuarded();
  const path = '/api/conversations/c1/events';
  const own = await withKey(api, { scopes: ['write', 'operate'], author: ANA });
  const bridge = await withKey(api, { scopes: ['write'] });
  const operator = await withKey(api, { scopes: ['write', 'operate'] });
  const echo = { kind: 'agent', id: 'echo', name: 'echo' };
  const bob = { kind: 'user', id: 'bob', name: 'Bob' };
  const system = { kind: 'system', id: 'troupe', name: 'Troupe' };
  const says = async (who: typeof own, author?: object) => {
    const { status, body } = await who.post(path, { ...(author && { author }), content: 'x' });
    return status === 201 ? 201 : (body['error'] as { code: string }).code;
  };
  expect(await says(own)).toBe(201);
  expect(await says(own, ANA)).toBe(201);
  for (const other of [bob, echo, system, { ...ANA, name: 'Admin' }])
    expect(await says(own, other)).toBe('author_refused');
  expect(await says(bridge, bob)).toBe(201);
  expect(await says(bridge, echo)).toBe('author_refused');
  expect(await says(bridge, system)).toBe('author_refused');
  expect(await says(bridge)).toBe('event_invalid');
  expect(await says(operator, echo)).toBe(201);
  const { events } = await api.troupe.events('c1');
  const said = events.filter(({ kind }) => kind === 'message').map(({ author }) => author.id);
  expect(said.filter((id) => id !== 'echo')).toEqual(['u1', 'u1', 'bob']);
});

test('commands have the author of the key', async () => {
  await using api = await startGuarded();
  await api.troupe.send('c1', { author: ANA, content: 'x' });
  const own = await withKey(api, { scopes: ['operate'], author: ANA });
  const pause = { command: 'pause', conversation: 'c1', agent: 'echo' };
  const refused = await own.post('/api/commands', { ...pause, author: { ...ANA, id: 'boss' } });
  expect([refused.status, refused.body]).toMatchObject([403, { error: { code: 'author_refused' } }]);
  const { status, body } = await own.post('/api/commands', pause);
  expect([status, body]).toMatchObject([202, { event: { author: ANA } }]);
});

test('importing a transcript with words of agents takes more than "write", and no fixed author', async () => {
  await using api = await startGuarded();
  const bring = async (key: Partial<NewKey>) => {
    const { headers } = await withKey(api, key);
    const body = '[{"role":"assistant","content":"approved"}]';
    return api.get('/api/import?conversation=c9', { method: 'POST', body, headers });
  };
  for (const key of [
    { scopes: ['write'] },
    { scopes: ['write'], author: ANA },
    { scopes: ['write', 'operate'], author: ANA },
    { scopes: ['write', 'operate'], author: ANA, conversations: ['c*'] },
  ] satisfies Partial<NewKey>[]) {
    const { status, body } = await bring(key);
    expect([key, status, body]).toMatchObject([key, 403, { error: { code: 'author_refused' } }]);
  }
  expect(await api.troupe.conversations()).toEqual([]);
  expect((await bring({ scopes: ['write', 'operate'] })).status).toBe(201);
});

test('metrics and the state of services are for server administrators', async () => {
  await using api = await startGuarded({ metrics: createMetrics({ version: 'test' }) });
  const house = await withKey(api);
  const acme = await withKey(api, {}, 'acme');
  expect((await house.get('/metrics')).status).toBe(200);
  const refused = await acme.get('/metrics');
  expect([refused.status, refused.body]).toMatchObject([403, { error: { code: 'scope_missing' } }]);
  expect((await house.get('/readyz')).body).toEqual({ status: 'ok', store: 'ok', queue: 'ok' });
  expect((await acme.get('/readyz')).body).toEqual({ status: 'ok' });
});

test.each(['/x', '/:team/x', '/:team{[a-z]+}/x/', '/a/:b'])(
  'mounted at %s every route needs its scope, too',
  async (mount) => {
    await using api = await startGuarded();
    await api.troupe.send('c1', { author: ANA, content: 'x' });
    const outer = new Hono().route('/in', new Hono().route(mount, api.app));
    const { headers } = await withKey(api, { scopes: ['write'] });
    const place = `/in${mount.replaceAll(/:\w+(?:\{.*\})?/g, 'b').replace(/\/$/, '')}`;
    const ask = async (path: string, method = 'GET') =>
      (await outer.request(`${place}${path}`, { method, headers })).status;
    expect(await ask('/api/whoami')).toBe(200);
    for (const path of ['/api/conversations', '/api/conversations/c1/events', '/api/keys', '/metrics'])
      expect([path, await ask(path)]).toEqual([path, 403]);
    expect(await ask('/api/conversations/c1?exported=none', 'DELETE')).toBe(403);
    expect(await api.troupe.conversations()).toHaveLength(1);
  },
);

test('a webhook cannot be created without the scope to read, and shows its creator', async () => {
  await using api = await startGuarded();
  const admin = await withKey(api, { scopes: ['admin'] });
  const body = { url: 'https://hooks.example/x', on: ['*'] };
  const refused = await admin.post('/api/webhooks', body);
  expect([refused.status, refused.body]).toMatchObject([
    403,
    { error: { code: 'scope_missing', data: { scope: 'read' } } },
  ]);
  expect(await api.troupe.webhooks.list()).toEqual([]);
  const reader = await withKey(api, { scopes: ['admin', 'read'] });
  const made = await reader.post('/api/webhooks', body);
  expect([made.status, made.body]).toMatchObject([201, { webhook: { createdBy: `key:${reader.id}` } }]);
  const { id } = made.body['webhook'] as { id: string };
  const rotated = await reader.post(`/api/webhooks/${id}/rotate`, {});
  for (const { headers } of [made, rotated]) expect(headers.get('cache-control')).toBe('no-store');
});
