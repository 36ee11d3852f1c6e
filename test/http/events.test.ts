import { expect, test } from 'vitest';
import { ANA, startApi } from './harness.ts';

const PATH = '/api/conversations/c1/events';

test('a message is stored as an event and answered by the agent it addresses', async () => {
  await using api = await startApi();
  const sent = await api.post(PATH, { author: ANA, to: ['echo'], content: 'Hello' });
  expect(sent.status).toBe(201);
  expect(sent.body).toMatchObject({
    event: {
      conversation: 'c1',
      seq: 1,
      kind: 'message',
      author: ANA,
      to: ['echo'],
      body: { content: 'Hello' },
    },
  });
  await api.troupe.idle();
  const { body } = await api.get(PATH);
  const events = body['events'] as unknown as { kind: string; seq: number }[];
  expect(events.at(-2)).toMatchObject({
    kind: 'message',
    author: { id: 'echo' },
    body: { content: 'answer 1' },
  });
  expect(events.at(-1)).toMatchObject({ kind: 'turn.done', body: { covers: [1] } });
  expect(body['head']).toBe(events.length);
});

test('the same id and payload give the same event; another payload is a conflict that changes nothing', async () => {
  await using api = await startApi();
  const message = { id: 'm1', author: ANA, content: 'Hello' };
  const first = await api.post(PATH, message);
  const again = await api.post(PATH, message);
  expect([first.status, again.status]).toEqual([201, 200]);
  expect(again.body).toEqual(first.body);
  const other = await api.post(PATH, { ...message, content: 'Bye' });
  expect(other.status).toBe(409);
  expect(other.body).toMatchObject({ error: { code: 'event_conflict', data: { id: 'm1', seq: 1 } } });
  expect((await api.get(PATH)).body).toMatchObject({ head: 1, events: [{ body: { content: 'Hello' } }] });
});

test('an unknown agent is reported with the known ones and the nearest', async () => {
  await using api = await startApi();
  const { status, body } = await api.post(PATH, { author: ANA, to: ['ecko'], content: 'x' });
  expect(status).toBe(400);
  expect(body).toMatchObject({
    error: { code: 'agent_unknown', data: { nearest: 'echo', known: ['echo', 'other'] } },
  });
  expect((await api.get(PATH)).body).toMatchObject({ error: { code: 'conversation_unknown' } });
});

test.each<[string, string, unknown, string]>([
  ['no author', PATH, { content: 'x' }, 'author'],
  ['an author without a name', PATH, { author: { kind: 'user', id: 'u' }, content: 'x' }, 'author.name'],
  ['an author of no known kind', PATH, { author: { ...ANA, kind: 'root' }, content: 'x' }, 'author.kind'],
  ['no content', PATH, { author: ANA }, 'content'],
  ['no conversation', '/api/conversations//events', { author: ANA, content: 'x' }, 'conversation'],
  [
    'a conversation that is no slug',
    '/api/conversations/%24where/events',
    { author: ANA, content: 'x' },
    'conversation',
  ],
  ['a tenant of its own', PATH, { author: ANA, content: 'x', tenant: 'evil' }, 'tenant'],
  ['an operator for an id', PATH, { author: ANA, content: 'x', id: { $gt: '' } }, 'id'],
  ['an operator for content', PATH, { author: ANA, content: { $where: '1' } }, 'content'],
  ['an XState marker', PATH, { author: { ...ANA, xstate$$type: 1 }, content: 'x' }, 'author.xstate$$type'],
  ['a key with a dot', PATH, { author: ANA, content: 'x', 'body.content': 'y' }, 'body.content'],
  [
    '__proto__',
    PATH,
    `{"author":${JSON.stringify(ANA)},"content":"x","__proto__":{"to":["echo"]}}`,
    '__proto__',
  ],
  ['257 recipients', PATH, { author: ANA, content: 'x', to: Array(257).fill('echo') }, 'to'],
  ['a recipient that is no text', PATH, { author: ANA, content: 'x', to: [{ $ne: 1 }] }, 'to.0'],
  ['a list', PATH, [], ''],
  ['half a document', PATH, '{"author":', ''],
  ['JSON nested 65 deep', PATH, `${'['.repeat(65)}${']'.repeat(65)}`, ''],
])('%s is refused with its path', async (_, path, body, at) => {
  await using api = await startApi();
  const answer = await api.post(path, body);
  expect(answer.status).toBe(400);
  expect(answer.body).toMatchObject({ error: { code: 'event_invalid', data: { path: at } } });
  expect(await api.troupe.conversations()).toEqual([]);
  expect(api.errors).toEqual([]);
});

test('an invalid field is not reported as missing', async () => {
  await using api = await startApi();
  const told = async (body: unknown) =>
    ((await api.post(PATH, body)).body['error'] as { message: string }).message;
  expect(await told({ author: ANA })).toBe('content: is missing');
  expect(await told({ author: ANA, content: 5 })).toBe('content: is 5: give a text');
  expect(await told({ author: ANA, content: 'x', to: 'echo' })).toBe('to: is a text: give a list: [ … ]');
  expect(await told(null)).toBe('the body: is null: give an object: { … }');
});

test('JSON nested 64 levels deep is accepted, and brackets in strings do not count', async () => {
  await using api = await startApi();
  const deep = await api.post(PATH, `${'['.repeat(64)}${']'.repeat(64)}`);
  expect(deep.body).not.toMatchObject({ error: { data: { limit: 64 } } });
  const text = `\\"${'[{'.repeat(100)}`;
  expect((await api.post(PATH, { author: ANA, content: text })).status).toBe(201);
});

test.each([
  ['by its declared length', true],
  ['while it streams', false],
])('a body above 1 MiB is refused %s', async (_, declared) => {
  await using api = await startApi();
  let pulled = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        pulled += 1;
        controller.enqueue(new Uint8Array(65_536).fill(32));
      },
    },
    { highWaterMark: 0 },
  );
  const headers = { 'content-type': 'application/json', ...(declared && { 'content-length': '1048577' }) };
  const init = { method: 'POST', body, headers, duplex: 'half' } as RequestInit;
  const answer = await api.get('/api/commands', init);
  expect(answer.status).toBe(413);
  expect(answer.body).toMatchObject({ error: { code: 'event_too_large', data: { limit: 1_048_576 } } });
  expect(pulled).toBeLessThanOrEqual(declared ? 0 : 17);
});

test.each([
  ['text/plain', {}],
  ['application/x-www-form-urlencoded', {}],
  ['application/json', { 'content-encoding': 'gzip' }],
])('a body of type %s %j is refused', async (type, more) => {
  await using api = await startApi();
  const answer = await api.post(PATH, { author: ANA, content: 'x' }, { 'content-type': type, ...more });
  expect(answer.status).toBe(415);
  expect(answer.body).toMatchObject({ error: { code: 'content_type_refused' } });
});

test.each([
  ['a lone surrogate', 'a\ud800b'],
  ['NUL', 'a\u0000b'],
  ['an XState marker as text', '{"xstate$$type":1,"id":"x"}'],
  ['query operators as text', '{"$where":"sleep(1)"}'],
  ['marks that reorder', '\u202eabc\u2066'],
])('%s in a message is stored intact', async (_, content) => {
  await using api = await startApi();
  expect((await api.post(PATH, { author: { ...ANA, name: content }, content })).status).toBe(201);
  const { events } = await api.troupe.events('c1');
  expect(events[0]).toMatchObject({ author: { name: content }, body: { content } });
  expect((await api.get(PATH)).body).toMatchObject({ events: [{ body: { content } }] });
});

test('bytes that are not UTF-8 are refused, not repaired', async () => {
  await using api = await startApi();
  const body = Buffer.concat([Buffer.from('{"content":"'), Buffer.from([0xff]), Buffer.from('"}')]);
  const headers = { 'content-type': 'application/json' };
  const answer = await api.get(PATH, { method: 'POST', body, headers });
  expect(answer.body).toMatchObject({ error: { code: 'event_invalid', message: 'the body is not UTF-8' } });
});

test('events are read in pages', async () => {
  await using api = await startApi();
  for (let n = 1; n <= 5; n++) await api.post(PATH, { author: ANA, content: `${n}` });
  const { body } = await api.get(`${PATH}?after=2&limit=2`);
  expect(body).toMatchObject({ head: 5, events: [{ seq: 3 }, { seq: 4 }] });
  for (const query of ['after=-1', 'after=x', 'limit=0', 'limit=5001']) {
    expect((await api.get(`${PATH}?${query}`)).body).toMatchObject({
      error: { code: 'event_invalid', data: { path: query.split('=')[0] } },
    });
  }
});
