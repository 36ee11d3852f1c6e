import { Hono } from 'hono';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { DOORS } from '../../src/library/integrations/door.ts';
import { openDoors } from '../../src/library/runtime/doors.ts';
import { openApiDocument } from '../../src/http/api/index.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import { startGuarded } from './access.ts';
import { ANA, type Harness, scripted, startApi } from './harness.ts';

const Parameter = z.object({
  name: z.string(),
  in: z.enum(['path', 'query']),
  required: z.boolean(),
  schema: z.looseObject({}),
  example: z.string().optional(),
});
const Response = z.object({
  $ref: z.string().optional(),
  content: z.record(z.string(), z.unknown()).optional(),
  links: z
    .record(z.string(), z.object({ operationId: z.string(), parameters: z.record(z.string(), z.string()) }))
    .optional(),
});
const Described = z.object({
  operationId: z.string(),
  security: z.array(z.looseObject({})),
  parameters: z.array(Parameter),
  requestBody: z
    .object({ content: z.record(z.string(), z.object({ example: z.unknown().optional() })) })
    .optional(),
  responses: z.record(z.string(), Response),
});
const Document = z.object({
  servers: z.array(z.object({ url: z.string() })).length(1),
  paths: z.record(z.string(), z.record(z.string(), Described)),
  components: z.object({ responses: z.record(z.string(), Response) }),
});

/** All of them, as in the document of an app that has them open. */
const doors = await openDoors(DOORS);

type Operation = z.infer<typeof Described> & { method: string; path: string };

function operations(): Operation[] {
  const { paths } = Document.parse(openApiDocument({ doors }));
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, each]) => ({ ...each, method: method.toUpperCase(), path })),
  );
}

const PROBES = ['/healthz', '/readyz'];
/** Ids that exist once `begin` has run. */
const IDS: Record<string, string> = {
  conversation: 'c1',
  agent: 'echo',
  turn: 'c1:echo:1',
  other: 'c1:echo:2',
  chat: 'c1',
  key: 'nobody',
  person: 'nobody',
  webhook: 'nobody',
  model: 'echo',
  response: 'resp_c1_1',
};

function address({ path }: Pick<Operation, 'path'>, ids: Record<string, string> = IDS): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? ''));
}

async function begin(api: Harness): Promise<void> {
  for (const content of ['one', 'two']) {
    await api.troupe.send('c1', { author: ANA, to: ['echo'], content });
    await api.troupe.idle();
  }
}

test('every operation has its own id, and the document names its server', async () => {
  const names = operations().map(({ operationId }) => operationId);
  expect(new Set(names).size).toBe(names.length);
  await using api = await startApi();
  const headers = { 'x-forwarded-prefix': '/behind' };
  const mounted = new Hono().route('/inspector', api.app);
  for (const [app, mount] of [
    [api.app, ''],
    [mounted, '/inspector'],
  ] as const) {
    const at = `${mount}/api/openapi.json`;
    const plain = Document.parse(await (await app.request(at)).json());
    expect(plain.servers).toEqual([{ url: mount || '/' }]);
    const behind = Document.parse(await (await app.request(at, { headers })).json());
    expect(behind.servers).toEqual([{ url: `/behind${mount}` }]);
  }
});

test('every operation behind the guard declares the errors that its input can cause', () => {
  const { components } = Document.parse(openApiDocument({ doors }));
  for (const { method, path, parameters, requestBody, responses } of operations()) {
    if (PROBES.includes(path)) continue;
    const wanted = [401, 403, 429, 500, 503];
    if (parameters.length > 0 || requestBody) wanted.push(400);
    if (parameters.some((each) => each.in === 'path')) wanted.push(404);
    if (requestBody) wanted.push(413, 415);
    expect([method, path, Object.keys(responses)]).toEqual([
      method,
      path,
      expect.arrayContaining(wanted.map(String)),
    ]);
    for (const status of wanted) {
      const { $ref, content } = responses[status] ?? {};
      const name = $ref?.split('/').at(-1) ?? '';
      expect(content ?? components.responses[name]?.content).toHaveProperty(['application/json']);
    }
  }
});

test('a query parameter is required exactly if its route refuses to run without it', async () => {
  await using api = await startApi();
  await begin(api);
  const found: string[] = [];
  for (const operation of operations()) {
    // An event stream does not end.
    if (operation.path === '/api/events') continue;
    for (const { name, in: place, required } of operation.parameters) {
      if (place !== 'query') continue;
      const { method } = operation;
      const answer = await api.app.request(address(operation), { method });
      const text = await answer.text();
      const body: unknown = answer.ok ? null : JSON.parse(text);
      const problem = z.object({ error: z.object({ data: z.object({ path: z.string() }) }) }).safeParse(body);
      const isMissed = problem.success && problem.data.error.data.path === name;
      expect([method, operation.path, name, required]).toEqual([method, operation.path, name, isMissed]);
      if (required) found.push(`${method} ${name}`);
    }
  }
  expect(found.toSorted()).toEqual(['DELETE exported', 'GET q', 'GET seq', 'GET seq']);
});

test('an empty or incomplete number is refused in every parameter, and is not 0', async () => {
  await using api = await startApi();
  await begin(api);
  let tried = 0;
  for (const operation of operations().filter(({ method }) => method === 'GET')) {
    for (const { name, in: place, schema } of operation.parameters) {
      if (place !== 'query' || schema['type'] !== 'integer') continue;
      for (const wrong of ['', '%20', '1.5', '1e1', '0x1', '-1']) {
        const { status, body } = await api.get(`${address(operation)}?q=x&${name}=${wrong}`);
        expect([operation.path, name, wrong, status]).toEqual([operation.path, name, wrong, 400]);
        expect(body).toMatchObject({ error: { data: { path: name } } });
        tried += 1;
      }
    }
  }
  expect(tried).toBeGreaterThan(60);
  expect((await api.get('/api/conversations/c1/snapshot?at=1')).body).toMatchObject({ seq: 1 });
});

test('every id in a path has a pattern that its example matches, and other values give 404', async () => {
  await using api = await startApi();
  await begin(api);
  for (const operation of operations()) {
    for (const { name, in: place, schema, example } of operation.parameters) {
      if (place !== 'path') continue;
      const pattern = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
      expect(pattern.safeParse(example).success).toBe(true);
      const wrong = 'a b/"';
      expect([operation.path, name, pattern.safeParse(wrong).success]).toEqual([operation.path, name, false]);
      if (operation.method !== 'GET') continue;
      const { status } = await api.get(address(operation, { ...IDS, [name]: wrong }));
      if (!(name === 'a' && /diff|compare/.test(operation.path))) expect([400, 404]).toContain(status);
    }
  }
});

test('the content type of every answer is declared', async () => {
  await using api = await startApi({ metrics: createMetrics({ version: 'test' }) });
  await begin(api);
  const asked = operations()
    // An event stream does not end; for attachments see `attachments.test.ts`.
    .filter(({ method, path }) => method === 'GET' && path !== '/api/events' && !path.endsWith('/attachment'))
    .map((operation) => ({ operation, at: `${address(operation)}?q=x&seq=1` }));
  const html = asked.find(({ operation }) => operation.path.endsWith('/export'));
  if (html) asked.push({ ...html, at: `${html.at}&format=html` });
  for (const { operation, at } of asked) {
    const { status, headers } = await api.app.request(at);
    // No answer of a chat is under way.
    const isResumed = operation.path.endsWith('/stream');
    if (operation.path !== '/api/webhooks/{webhook}')
      expect([at, status]).toEqual([at, isResumed ? 204 : 200]);
    if (isResumed) continue;
    const type = (headers.get('content-type') ?? '').split(';')[0] ?? '';
    const { content = { 'application/json': {} } } = operation.responses[status] ?? {};
    expect([at, Object.keys(content)]).toEqual([at, expect.arrayContaining([type])]);
  }
});

test('a repeated message is answered as declared', async () => {
  await using api = await startApi();
  const message = { id: 'm1', author: ANA, content: 'x' };
  const operation = operations().find(({ operationId }) => operationId === 'sendMessage');
  for (const status of [201, 200]) {
    expect((await api.post('/api/conversations/c1/events', message)).status).toBe(status);
    expect(operation?.responses).toHaveProperty([String(status)]);
  }
});

test('links lead from a message to every view of its conversation, and from its agents to their turns', async () => {
  await using api = await startApi();
  const all = operations();
  const linked = (name: string, status: number) =>
    all.find(({ operationId }) => operationId === name)?.responses[status]?.links ?? {};
  expect(linked('sendMessage', 201)['listEvents']?.parameters).toEqual({
    conversation: '$response.body#/event/conversation',
  });
  expect(linked('listActors', 200)['getTurn']?.parameters).toEqual({
    turn: '$response.body#/actors/0/lastTurn',
  });
  await begin(api);
  expect((await api.get('/api/conversations/c1/actors')).body).toMatchObject({
    actors: [{ lastTurn: 'c1:echo:2' }],
  });
  expect(Object.keys(linked('createWebhook', 201))).toContain('getWebhook');
  expect(Object.keys(linked('createKey', 201))).toContain('revokeKey');
});

test('links to ids of another tenant name it', () => {
  const linked = (name: string) =>
    operations().find(({ operationId }) => operationId === name)?.responses[201]?.links ?? {};
  expect(linked('createKey')['revokeKey']?.parameters).toEqual({
    key: '$response.body#/key/id',
    'query.tenant': '$response.body#/key/tenant',
  });
  expect(linked('createWebhook')['getWebhook']?.parameters).toEqual({
    webhook: '$response.body#/webhook/id',
    'query.tenant': '$request.query.tenant',
  });
  expect(linked('sendMessage')['listEvents']?.parameters).not.toHaveProperty(['query.tenant']);
});

test('the examples of paths and bodies are accepted together', async () => {
  await using api = await startApi({ agents: [scripted('writer', [{ reply: 'Good day.' }])] });
  await api.troupe.send('main', { author: ANA, to: ['writer'], content: 'Hello' });
  await api.troupe.idle();
  const accepted: string[] = [];
  for (const { operationId, method, path, parameters, requestBody } of operations()) {
    const [[type, { example }] = ['', { example: undefined }]] = Object.entries(requestBody?.content ?? {});
    if (example === undefined) continue;
    const names = parameters.map(({ name, example: id = '' }) => [name, id]);
    const answer = await api.app.request(
      address({ path }, Object.fromEntries(names) as Record<string, string>),
      {
        method,
        headers: { 'content-type': type },
        body: typeof example === 'string' ? example : JSON.stringify(example),
      },
    );
    expect([operationId, answer.status, await answer.text()]).toEqual([
      operationId,
      expect.toBeOneOf([200, 201, 202]),
      expect.any(String),
    ]);
    accepted.push(operationId);
    // An example that works on a conversation follows one that may have begun a turn there.
    await api.troupe.idle();
  }
  // The body of `rotateKey` has nothing to show, and its key would have to exist.
  const written = operations().filter(({ requestBody }) => requestBody !== undefined);
  expect(written.map(({ operationId }) => operationId).filter((id) => !accepted.includes(id))).toEqual([
    'rotateKey',
  ]);
});

test('every pattern is an expression without flags, which other languages know too', () => {
  const patterns = [
    ...JSON.stringify(openApiDocument({ doors })).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g),
  ].map(([, text]) => JSON.parse(text ?? '""') as string);
  expect(patterns.length).toBeGreaterThan(20);
  expect(patterns.filter((pattern) => /\\p\{|\(\?</.test(pattern) || !isExpression(pattern))).toEqual([]);
});

function isExpression(pattern: string): boolean {
  try {
    return new RegExp(pattern) instanceof RegExp;
  } catch {
    return false;
  }
}

test('the document has what generators of clients can read: no booleans as schemas, no lists of positions, names for kinds of events', () => {
  const document = openApiDocument({ doors }) as { components: { schemas: Record<string, Schema> } };
  const found: string[] = [];
  visit(document, (schema, at) => {
    const { items, prefixItems, properties, anyOf, type, maximum, format } = schema;
    if (typeof items === 'boolean' || Array.isArray(items) || prefixItems) found.push(`${at}: items`);
    for (const [name, each] of Object.entries(properties ?? {}))
      if (typeof each === 'boolean') found.push(`${at}/${name}: a boolean`);
    if (anyOf && anyOf.length > 2 && anyOf.some((each) => Object(each).type === 'null'))
      found.push(`${at}: null of three`);
    if (properties && (anyOf ?? schema['oneOf'])) found.push(`${at}: alternatives beside properties`);
    if (type === 'integer' && (maximum ?? Infinity) > 2 ** 31 && format !== 'int64')
      found.push(`${at}: int32`);
  });
  expect(found).toEqual([]);
  const { Event, MessageEvent } = document.components.schemas;
  expect(Event).toMatchObject({
    discriminator: { propertyName: 'kind', mapping: { message: '#/components/schemas/MessageEvent' } },
  });
  expect(MessageEvent?.properties).toMatchObject({ kind: { const: 'message' } });
  for (const { path } of operations())
    for (const [, name = ''] of path.matchAll(/\{(\w+)\}/g)) expect(name.length).toBeGreaterThan(2);
});

interface Schema extends Record<string, unknown> {
  items?: unknown;
  prefixItems?: unknown;
  properties?: Record<string, unknown>;
  anyOf?: unknown[];
  type?: unknown;
  maximum?: number;
  format?: unknown;
}

function visit(value: unknown, see: (schema: Schema, at: string) => void, at = ''): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value) && !at.endsWith('/properties')) see(value as Schema, at);
  for (const [name, each] of Object.entries(value)) if (name !== 'example') visit(each, see, `${at}/${name}`);
}

test('a server that admits callers without a key says so in its description', async () => {
  await using open = await startApi();
  const { body } = await open.get('/api/openapi.json');
  expect(Document.parse(body).paths['/api/agents']?.['get']?.security).toEqual([{ bearer: [] }, {}]);
  await using guarded = await startGuarded();
  const { secret } = await guarded.troupe.keys.create({ name: 'test', scopes: ['read'] });
  const answer = await guarded.get('/api/openapi.json', { headers: { authorization: `Bearer ${secret}` } });
  expect(Document.parse(answer.body).paths['/api/agents']?.['get']?.security).toEqual([{ bearer: [] }]);
});

test('an unknown method is 405 at the probes, too', async () => {
  await using api = await startApi();
  for (const path of PROBES) {
    const { status, headers, body } = await api.get(path, { method: 'PATCH' });
    expect([path, status, headers.get('allow')]).toEqual([path, 405, 'GET, HEAD']);
    expect(body).toMatchObject({ error: { code: 'method_refused' } });
  }
});
