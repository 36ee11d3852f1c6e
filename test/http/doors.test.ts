import { Hono } from 'hono';
import { expect, test } from 'vitest';
import * as z from 'zod';
import {
  beginExchange,
  createApp,
  defineDoor,
  defineRoute,
  openApiDocument,
  wholeAnswer,
  withPlace,
} from '../../src/http/api/index.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { DOORS } from '../../src/library/integrations/door.ts';
import { ECHO, startApi } from './harness.ts';
import { startGuarded, withKey } from './access.ts';

const post = (body: object) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

/** As a stranger writes it: what it imports is in `troupe/http`. */
const plain = defineDoor({
  name: 'plain',
  routes: [
    defineRoute({
      method: 'POST',
      path: '/api/plain/{place}',
      params: { place: { schema: z.string().regex(/^[a-z]+$/), example: 'here' } },
      scopes: ['write'],
      id: 'sayPlainly',
      summary: 'Says something, and answers with the last words',
      body: z.object({ text: z.string() }),
      answer: z.object({ text: z.string() }),
      errors: [403, 404, 409, 413, 429],
      async handle({ context, params, caller, body }, { clock, signal }) {
        const { text: content } = await body();
        return withPlace({ caller, clock, signal }, async (place) => {
          const said = { conversation: params.place, channel: 'plain', content, to: ['echo'] };
          const exchange = await beginExchange(caller, said);
          const { text } = await wholeAnswer(context, exchange, { ends: place.ends });
          place.end();
          return { text };
        });
      },
    }),
  ],
});

test('no door is open by itself, and its paths say which setting opens it', async () => {
  await using api = await startApi({ company: { agents: [ECHO], doors: [] } });
  const paths = {
    a2a: '/api/a2a/echo',
    'ag-ui': '/api/conversations/c/ag-ui',
    'ai-sdk': '/api/conversations/c/chat',
    mcp: '/api/mcp',
    openai: '/api/v1/chat/completions',
  };
  for (const door of DOORS) {
    const { status, body } = await api.post(paths[door], {});
    expect([status, body]).toEqual([
      404,
      {
        error: {
          code: 'route_unknown',
          message: `the door "${door}" is not open: name it in "doors" of the agents file, as doors: ['${door}']`,
          data: { door },
        },
      },
    ]);
  }
  expect(await api.post('/api/doors', {})).toMatchObject({ status: 404, body: { error: { data: {} } } });
  expect(JSON.stringify((await api.get('/api/openapi.json')).body)).not.toContain('/v1/');
});

test('only the doors that are named are open, and the document has them', async () => {
  await using api = await startApi({ company: { agents: [ECHO], doors: ['openai'] } });
  expect((await api.get('/api/v1/models')).status).toBe(200);
  expect((await api.post('/api/ag-ui', {})).status).toBe(404);
  const { paths } = (await api.get('/api/openapi.json')).body as { paths: object };
  expect(Object.keys(paths)).toContain('/api/v1/models');
  expect(Object.keys(paths)).not.toContain('/api/ag-ui');
});

test('a door of a program is guarded and described like the others', async () => {
  await using api = await startGuarded({ company: { agents: [ECHO], doors: [plain] } });
  const writer = await withKey(api, { scopes: ['read', 'write'] });
  const reader = await withKey(api, { scopes: ['read'] });
  const narrow = await withKey(api, { scopes: ['read', 'write'], conversations: ['there'] });
  expect((await api.post('/api/plain/here', { text: 'Hello' })).status).toBe(401);
  expect((await reader.post('/api/plain/here', { text: 'Hello' })).status).toBe(403);
  expect((await narrow.post('/api/plain/here', { text: 'Hello' })).status).toBe(404);
  expect((await writer.post('/api/plain/here', { words: 'Hello' })).status).toBe(400);
  expect(await writer.post('/api/plain/here', { text: 'Hello' })).toMatchObject({
    status: 200,
    body: { text: 'answer 1' },
  });
  const { events } = await api.troupe.events('here');
  expect(events[0]).toMatchObject({ kind: 'message', context: { channel: 'plain' } });
  const { paths } = openApiDocument({ doors: [plain] }) as { paths: Record<string, object> };
  expect(paths['/api/plain/{place}']).toMatchObject({
    post: { operationId: 'sayPlainly', 'x-troupe-scopes': ['write'], parameters: [{ example: 'here' }] },
  });
});

test('a door may be opened for one app, which may be mounted', async () => {
  await using troupe = await createTroupe({ agents: [ECHO] }, { onWarning: () => {} });
  const app = new Hono().route('/inner', createApp(troupe, { doors: [plain] }));
  const answered = await app.request('/inner/api/plain/here', post({ text: 'Hello' }));
  expect([answered.status, await answered.json()]).toEqual([200, { text: 'answer 1' }]);
  const other = await createApp(troupe).request('/api/plain/here', post({ text: 'Hello' }));
  expect(other.status).toBe(404);
});

test('a door that would hide another, or work without its troupe, is refused', async () => {
  await using troupe = await createTroupe({ agents: [ECHO], doors: [plain] }, { onWarning: () => {} });
  const integration = { name: 'plain', start: async () => {}, close: async () => {} };
  const refused = (doors: Parameters<typeof createApp>[1]) => () => createApp(troupe, doors);
  expect(refused({ doors: [plain] })).toThrow('there are two doors named "plain"');
  expect(refused({ doors: [{ ...plain, name: 'other' }] })).toThrow(
    'there are two routes POST /api/plain/{place}',
  );
  expect(refused({ doors: [{ name: 'busy', routes: [], integration }] })).toThrow(
    'the door "busy" works beside its routes: name it in "doors" of the definition',
  );
  const definition = { agents: [ECHO], doors: ['openapi'] } as unknown as Parameters<typeof createTroupe>[0];
  await expect(createTroupe(definition)).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining(
      'doors[0]: is one of a2a, ag-ui, ai-sdk, mcp, openai, or made with defineDoor',
    ),
  });
});
