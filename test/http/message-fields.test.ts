import { expect, test } from 'vitest';
import { startGuarded, withKey } from './access.ts';
import { ANA, ECHO, OTHER, startApi } from './harness.ts';

const PATH = '/api/conversations/c1/events';
const COMPANY = { agents: [ECHO, OTHER], defaults: { respondWhenUnaddressed: 'echo' } };

test('a message with includeInContext: false is stored for people, found by search, and answered by nobody', async () => {
  await using api = await startApi({ company: COMPANY });
  const sent = await api.post(PATH, { author: ANA, content: 'invoice 7 was paid', includeInContext: false });
  expect(sent).toMatchObject({
    status: 201,
    body: { event: { kind: 'notice', to: [], body: { content: 'invoice 7 was paid' } } },
  });
  await api.troupe.idle();
  const { events } = (await api.get(PATH)).body as { events: { kind: string }[] };
  expect(events.map(({ kind }) => kind)).toEqual(['notice']);
  await expect
    .poll(async () => (await api.get('/api/search?q=invoice')).body)
    .toMatchObject({ hits: [{ conversation: 'c1' }] });
  const rows = await api.get('/api/conversations/c1/rows');
  expect(JSON.stringify(rows.body)).toContain('invoice 7 was paid');
  const page = await api.app.request('/api/conversations/c1/export?format=html');
  expect(await page.text()).toContain('invoice 7 was paid');
});

test('with includeInContext: true a message is a message', async () => {
  await using api = await startApi({ company: COMPANY });
  const sent = await api.post(PATH, { author: ANA, content: 'hi', includeInContext: true });
  expect(sent).toMatchObject({ status: 201, body: { event: { kind: 'message', to: ['echo'] } } });
  expect(await api.post(PATH, { author: ANA, content: 'hi', includeInContext: 'no' })).toMatchObject({
    status: 400,
    body: { error: { code: 'event_invalid', data: { path: 'includeInContext' } } },
  });
});

test('an exported notice is a notice after the import', async () => {
  await using api = await startApi({ company: COMPANY });
  await api.post(PATH, { author: ANA, content: 'for people', includeInContext: false });
  const file = await (await api.app.request('/api/conversations/c1/export')).text();
  const imported = await api.app.request('/api/import?conversation=c2', { method: 'POST', body: file });
  expect(imported.status).toBe(201);
  const { events } = (await api.get('/api/conversations/c2/events')).body as { events: object[] };
  expect(events).toMatchObject([{ kind: 'notice', body: { content: 'for people' } }]);
});

test('an event names the channel it came through, and only operators may name another', async () => {
  await using api = await startGuarded({ company: COMPANY });
  const guest = await withKey(api, { scopes: ['read', 'write'] });
  const gateway = await withKey(api, { scopes: ['read', 'write', 'operate'] });
  const message = { author: ANA, to: ['other'], content: 'hi' };
  expect(await guest.post(PATH, message)).toMatchObject({
    body: { event: { context: { channel: 'http' } } },
  });
  expect(await guest.post(PATH, { ...message, channel: 'nostr' })).toMatchObject({
    status: 403,
    body: { error: { code: 'scope_missing', data: { scope: 'operate' } } },
  });
  expect(await guest.post(PATH, { ...message, context: { channel: 'nostr' } })).toMatchObject({
    status: 400,
    body: { error: { code: 'event_invalid' } },
  });
  expect(await gateway.post(PATH, { ...message, channel: 'telegram' })).toMatchObject({
    body: { event: { context: { channel: 'telegram' } } },
  });
  expect(await gateway.post(PATH, { ...message, channel: 'Two words' })).toMatchObject({
    status: 400,
    body: { error: { code: 'event_invalid', data: { path: 'channel' } } },
  });
});

test('only operators may set the mode with a message, and others learn of no conversation by it', async () => {
  await using api = await startGuarded({ company: COMPANY });
  const guest = await withKey(api, { scopes: ['read', 'write'] });
  const limited = await withKey(api, { scopes: ['read', 'write', 'operate'], conversations: ['own'] });
  const operator = await withKey(api, { scopes: ['read', 'write', 'operate'] });
  const message = { author: ANA, to: ['other'], content: 'hi', mode: 'chat' };
  const isMissing = { status: 403, body: { error: { code: 'scope_missing', data: { scope: 'operate' } } } };
  expect(await guest.post(PATH, message)).toMatchObject(isMissing);
  expect(await limited.post(PATH, message)).toMatchObject({ status: 404 });
  expect(await operator.post(PATH, message)).toMatchObject({
    status: 201,
    body: { event: { seq: 2, context: { mode: 'chat' } } },
  });
  expect(await guest.post(PATH, message)).toMatchObject(isMissing);
  expect(await limited.post(PATH, message)).toMatchObject({ status: 404 });
  expect(await operator.post(PATH, { ...message, mode: 'talk' })).toMatchObject({
    status: 400,
    body: { error: { code: 'event_invalid', data: { path: 'mode' } } },
  });
});

test('a message sent again through another channel is the stored one', async () => {
  await using api = await startApi({ company: COMPANY });
  const message = { id: 'm1' as never, author: ANA, to: ['other'], content: 'hi' };
  const first = await api.troupe.send('c1', message);
  expect(first.event.context).toEqual({ channel: 'library' });
  const again = await api.post(PATH, message);
  expect(again).toMatchObject({ status: 200, body: { event: { context: { channel: 'library' } } } });
  expect(await api.post(PATH, { ...message, content: 'ho' })).toMatchObject({ status: 409 });
});

test('only operators may name a session for an agent', async () => {
  await using api = await startGuarded({ company: COMPANY });
  const guest = await withKey(api, { scopes: ['read', 'write'] });
  const operator = await withKey(api, { scopes: ['read', 'write', 'operate'] });
  const session = { agent: 'other', provider: 'claude-code', id: 'f00d' };
  const message = { author: ANA, to: ['other'], content: 'hi', session };
  expect(await guest.post(PATH, message)).toMatchObject({
    status: 403,
    body: { error: { code: 'scope_missing', data: { scope: 'operate' } } },
  });
  const sent = await operator.post(PATH, message);
  expect(sent).toMatchObject({ status: 201, body: { event: { context: { channel: 'http', session } } } });
  await api.troupe.idle();
  const { events } = await api.troupe.events('c1');
  expect(events).toContainEqual(
    expect.objectContaining({
      kind: 'session.changed',
      body: expect.objectContaining({ change: 'refused', reason: 'provider' }),
    }),
  );
  const forged = { ...message, session: { ...session, refused: 'author' } };
  expect((await operator.post(PATH, forged)).status).toBe(400);
});
