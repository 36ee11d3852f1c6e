import { expect, test } from 'vitest';
import { TroupeError } from '../../src/base/errors.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { InboxAnswer } from '../../src/http/inbox.ts';
import { type Asker, startGuarded, withKey } from './access.ts';
import { ANA, readStream, scripted } from './harness.ts';

const MESSAGE = { author: ANA, to: ['echo'], content: 'words' };
const COMPANY = {
  agents: [
    {
      ...scripted('boss', [
        { when: { contains: 'result of d-' }, reply: 'done' },
        { reply: '', calls: [{ name: 'delegate', args: { to: 'echo', task: 'do it' } }] },
      ]),
      tools: ['delegate'],
    },
    scripted('echo', [{ reply: 'answer {{n}}' }]),
  ],
};

test('a key sees and writes only its granted conversations, by id or prefix', async () => {
  await using api = await startGuarded();
  const house = await withKey(api);
  const guest = await withKey(api, { scopes: ['read', 'write'], conversations: ['hall', 'team-*'] });
  for (const id of ['hall', 'hall2', 'team-a', 'team-b', 'teams'])
    await house.post(`/api/conversations/${id}/events`, MESSAGE);
  await api.troupe.idle();
  const seen = async (path: string) => {
    const { conversations } = (await guest.get(path)).body as { conversations: { id: string }[] };
    return conversations.map(({ id }) => id).toSorted();
  };
  expect(await seen('/api/conversations')).toEqual(['hall', 'team-a', 'team-b']);
  expect(await seen('/api/conversations?limit=2')).toHaveLength(2);
  // The inbox reads the logs when it is asked, for a limited time.
  await expect.poll(async () => (await guest.get('/api/inbox')).body['unread']).toBe(0);
  const { counts, lines } = InboxAnswer.parse((await guest.get('/api/inbox')).body);
  expect(lines.map(({ id }) => id).toSorted()).toEqual(['hall', 'team-a', 'team-b']);
  expect(counts).toMatchObject({ quiet: 3, failed: 0 });
  const team = InboxAnswer.parse((await guest.get('/api/inbox?prefix=team')).body);
  expect(team.lines.map(({ id }) => id).toSorted()).toEqual(['team-a', 'team-b']);
  expect((await guest.get('/api/inbox?prefix=hall2')).body).toMatchObject({ lines: [], unread: 0 });
  const { hits } = (await guest.get('/api/search?q=words')).body as { hits: { conversation: string }[] };
  expect(hits.map(({ conversation }) => conversation).toSorted()).toEqual(['hall', 'team-a', 'team-b']);
  for (const [id, status] of [
    ['hall', 201],
    ['team-new', 201],
    ['hall2', 404],
    ['teams', 404],
    ['new', 404],
  ] as const)
    expect([id, (await guest.post(`/api/conversations/${id}/events`, MESSAGE)).status]).toEqual([id, status]);
  expect(await api.troupe.conversations()).toHaveLength(6);
  expect((await guest.get('/api/budgets')).body).toEqual({ budgets: [] });
  expect((await guest.get('/api/budgets?conversation=teams')).status).toBe(404);
});

test('a key with one author keeps it within a grant', async () => {
  await using api = await startGuarded();
  const own = await withKey(api, {
    scopes: ['read', 'write', 'operate'],
    author: ANA,
    conversations: ['hall'],
  });
  const path = '/api/conversations/hall/events';
  expect((await own.post(path, MESSAGE)).status).toBe(201);
  await api.troupe.idle();
  const before = await api.troupe.events('hall');
  const boss = { ...ANA, id: 'boss' };
  for (const [at, body] of [
    [path, { ...MESSAGE, author: boss }],
    [path, { ...MESSAGE, author: { kind: 'agent', id: 'echo', name: 'echo' } }],
    ['/api/commands', { command: 'pause', conversation: 'hall', agent: 'echo', author: boss }],
  ] as const) {
    const refused = await own.post(at, body);
    expect([refused.status, refused.body]).toMatchObject([403, { error: { code: 'author_refused' } }]);
  }
  expect(await api.troupe.events('hall')).toEqual(before);
});

test('a turn is compared only with a granted one, in either order', async () => {
  await using api = await startGuarded();
  for (const id of ['hall', 'secret']) await api.troupe.send(id, MESSAGE);
  await api.troupe.idle();
  const [own, foreign] = ['hall:echo:1', 'secret:echo:1'];
  const house = await withKey(api);
  const guest = await withKey(api, { scopes: ['read'], conversations: ['hall'] });
  expect((await guest.get(`/api/turns/${own}/diff/${own}`)).status).toBe(200);
  expect((await guest.get(`/api/turns/${own}/diff/next`)).status).toBe(200);
  // The answer is identical to that for a turn that does not exist.
  for (const query of ['', '?step=7']) {
    const nobodys = await house.get(`/api/turns/nobody:echo:1/prompt${query}`);
    const { status, body } = await guest.get(`/api/turns/${foreign}/prompt${query}`);
    const told = JSON.stringify(body).replaceAll(foreign, 'nobody:echo:1');
    expect([status, told]).toEqual([404, JSON.stringify(nobodys.body)]);
  }
  for (const [path, status] of [
    [foreign, 200],
    [`${foreign}/prompt`, 200],
    [`${foreign}/diff/next`, 200],
    // Refuses two turns of one conversation; only a caller who may read both learns that they exist.
    [`${own}/diff/${foreign}`, 400],
    [`${foreign}/diff/${own}`, 400],
  ] as const) {
    expect([path, (await house.get(`/api/turns/${path}`)).status]).toEqual([path, status]);
    const { status: refused, body } = await guest.get(`/api/turns/${path}`);
    expect([path, refused, body]).toMatchObject([path, 404, { error: { code: 'turn_unknown' } }]);
  }
});

test('a key with a grant sees only the spending of its own conversations', async () => {
  await using api = await startGuarded({
    company: {
      agents: [scripted('echo', [{ reply: 'ok' }])],
      budgets: { conversation: { tokens: 500_000 }, agents: { echo: { tokens: 1_000_000, per: 'day' } } },
    },
  });
  for (const id of ['hall', 'secret']) await api.troupe.send(id, MESSAGE);
  await api.troupe.idle();
  const scopesOf = async (who: Asker, query: string) => {
    const { budgets } = (await who.get(`/api/budgets${query}`)).body as { budgets: { scope: string }[] };
    return budgets.map(({ scope }) => scope);
  };
  const house = await withKey(api);
  expect(await scopesOf(house, '?conversation=hall')).toEqual(['conversation', 'agent']);
  expect(await scopesOf(house, '')).toEqual(['agent']);
  const guest = await withKey(api, { scopes: ['read'], conversations: ['hall'] });
  expect(await scopesOf(guest, '?conversation=hall')).toEqual(['conversation']);
  expect(await scopesOf(guest, '?conversation=hall&agent=echo')).toEqual(['conversation']);
  expect(await scopesOf(guest, '')).toEqual([]);
  expect(await scopesOf(guest, '?agent=echo')).toEqual([]);
  expect((await guest.get('/api/budgets?conversation=secret')).status).toBe(404);
});

test('the thread of a task is visible with its root, and never alone', async () => {
  await using api = await startGuarded({ company: COMPANY });
  const root = 'r'.repeat(120);
  for (const conversation of ['root', root])
    await api.troupe.send(conversation, { author: ANA, to: ['boss'], content: 'x' });
  await api.troupe.idle();
  const ids = (await api.troupe.conversations()).map(({ id }) => id);
  const [thread = '', long = ''] = [
    ids.find((id) => id.startsWith('root.')),
    ids.find((id) => id.startsWith('rrr') && id !== root),
  ];
  expect([thread, long]).toEqual([expect.stringMatching(/\.d-/), expect.stringMatching(/\.d-/)]);
  const listed = async (...conversations: string[]) => {
    const guest = await withKey(api, { scopes: ['read'], conversations });
    const statuses = await Promise.all(
      [thread, long].map(async (id) => (await guest.get(`/api/conversations/${id}/events`)).status),
    );
    const { body } = await guest.get('/api/conversations');
    return [(body['conversations'] as object[]).length, ...statuses];
  };
  expect(await listed('root')).toEqual([2, 200, 404]);
  const guest = await withKey(api, { scopes: ['read'], conversations: ['root'] });
  const exported = await api.app.request('/api/conversations/root/export?threads=true', {
    headers: guest.headers,
  });
  expect(await exported.text()).toContain(`"conversation":"${thread}"`);
  expect(await listed('roo*')).toEqual([2, 200, 404]);
  expect(await listed(thread)).toEqual([0, 404, 404]);
  expect(await listed(root)).toEqual([2, 404, 200]);
  expect(await listed(`${root.slice(0, 80)}*`)).toEqual([2, 404, 200]);
  expect(await listed(`${root.slice(0, 110)}*`)).toEqual([1, 404, 404]);
  expect(await listed('other')).toEqual([0, 404, 404]);
});

test.each([
  { command: 'fork', conversation: 'hall', seq: 1 },
  { command: 'fork', turn: 'hall:echo:1' },
  { command: 'fork', conversation: 'hall', seq: 1, as: 'elsewhere' },
  { command: 'fork', conversation: 'secret', seq: 1, as: 'team-x' },
  { command: 'fork', turn: 'secret:echo:1', as: 'team-x' },
  { command: 'rerun', turn: 'hall:echo:1' },
  { command: 'rerun', turn: 'hall:echo:1', as: 'elsewhere' },
  { command: 'rerun', turn: 'secret:echo:1', as: 'team-x' },
  { command: 'run', conversation: 'elsewhere', workflow: 'w' },
  { command: 'spawn', conversation: 'secret', template: 't' },
  { command: 'retry', turn: 'secret:echo:1' },
])('a command reaches no further than its grant: %o', async (command) => {
  await using api = await startGuarded();
  for (const id of ['hall', 'secret']) await api.troupe.send(id, MESSAGE);
  await api.troupe.idle();
  const before = await api.troupe.conversations();
  const guest = await withKey(api, { conversations: ['hall', 'team-*'] });
  const { status, body } = await guest.post('/api/commands', command);
  expect([status, body]).toMatchObject([
    404,
    { error: { code: expect.stringMatching(/^(?:turn|conversation)_unknown$/) } },
  ]);
  expect(await api.troupe.conversations()).toEqual(before);
});

test('a fork whose shortened id would lie beyond the grant is not created', async () => {
  await using api = await startGuarded();
  const long = 'x'.repeat(125);
  await api.troupe.send(long, MESSAGE);
  await api.troupe.idle();
  const before = await api.troupe.conversations();
  const fork = { command: 'fork', conversation: long, seq: 1 };
  for (const conversations of [[long], [`${long}*`], [`${long.slice(0, 91)}*`]]) {
    const guest = await withKey(api, { conversations });
    expect((await guest.get(`/api/conversations/${long}`)).status).toBe(200);
    expect((await guest.post('/api/commands', fork)).status).toBe(404);
  }
  expect(await api.troupe.conversations()).toEqual(before);
  const guest = await withKey(api, { conversations: [`${long.slice(0, 90)}*`] });
  expect((await guest.post('/api/commands', fork)).status).toBe(202);
  expect(await api.troupe.conversations()).toHaveLength(2);
});

test('a fork within the grant is created', async () => {
  await using api = await startGuarded();
  await api.troupe.send('team-a', MESSAGE);
  await api.troupe.idle();
  const guest = await withKey(api, { conversations: ['team-*'] });
  for (const as of [undefined, 'team-b']) {
    const { status } = await guest.post('/api/commands', {
      command: 'fork',
      conversation: 'team-a',
      seq: 1,
      as,
    });
    expect(status).toBe(202);
  }
});

test('an import stays within the grant, with everything in the file', async () => {
  await using api = await startGuarded();
  const guest = await withKey(api, { conversations: ['hall', 'team-*'] });
  const body = '[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]';
  const into = async (query: string, file = body) =>
    (await api.get(`/api/import${query}`, { method: 'POST', body: file, headers: guest.headers })).status;
  expect(await into('')).toBe(404);
  expect(await into('?conversation=secret')).toBe(404);
  // For a file with several conversations the target is the beginning of their names.
  const several = '{"messages":[{"role":"user","content":"hi"}]}\n'.repeat(2);
  expect(await into('?conversation=hall', several)).toBe(404);
  expect(await api.troupe.conversations()).toEqual([]);
  expect(await into('?conversation=hall')).toBe(201);
  expect(await into('?conversation=team-a')).toBe(201);
});

test('each conversation of a file stays within the grant, whatever id it gets', async () => {
  await using api = await startGuarded();
  const line = '{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]}\n';
  const into = async (conversation: string, body: string, conversations: string[]) => {
    const { headers } = await withKey(api, { conversations });
    return (await api.get(`/api/import?conversation=${conversation}`, { method: 'POST', body, headers }))
      .status;
  };
  const ids = async () => (await api.troupe.conversations()).map(({ id }) => id).toSorted();
  // There is no room for numbers behind these names: the names are shortened, and begin differently.
  const long = 'x'.repeat(128);
  expect(await into(long, line + line, [`${long}*`])).toBe(404);
  // A thread is granted only together with its root.
  expect(await into('hall.d-000000000000', line, ['hall.d-*'])).toBe(404);
  expect(await ids()).toEqual([]);
  expect(await into('team-a', line + line, ['team-*'])).toBe(201);
  expect(await ids()).toEqual(['team-a-1', 'team-a-2']);
  const { events } = await api.troupe.events('team-a-2');
  expect(events.filter(({ kind }) => kind === 'message')).toHaveLength(2);
});

/** A task of `echo` for `echo`, as in an export. */
function opened(places: { home: string; thread: string; root: string }): string {
  const task = { delegation: 'd-000000000000', how: 'delegate', delegator: 'echo', assignee: 'echo' };
  const body = { ...task, ...places, task: 'x', group: 'g', join: 'all', chain: ['echo'] };
  const event = { id: 'e1', author: { kind: 'agent', id: 'echo', name: 'echo' }, to: [], body };
  return `{"troupe":1}\n${JSON.stringify({ ...event, kind: 'delegation.opened' })}\n`;
}

test.each([
  // An export or deletion with threads would include it with the content of `secret`.
  { home: 'team-a', thread: 'secret', root: 'team-a' },
  // Its answer would be reported to an agent in `secret`, which would then continue there.
  { home: 'secret', thread: 'team-a', root: 'team-a' },
  // Its costs would be charged to `secret`.
  { home: 'team-a', thread: 'team-a', root: 'secret' },
])('what is imported leads nowhere beyond the grant: %o', async (places) => {
  await using api = await startGuarded();
  await api.troupe.send('secret', MESSAGE);
  await api.troupe.idle();
  const before = await api.troupe.events('secret');
  const guest = await withKey(api, { conversations: ['team-*'] });
  const into = async (text: string) => {
    const init = { method: 'POST', body: text, headers: guest.headers };
    return (await api.get('/api/import?conversation=team-a&format=troupe', init)).status;
  };
  expect(await into(opened(places))).toBe(404);
  expect((await guest.get('/api/conversations/team-a/export?threads=true')).status).toBe(404);
  expect((await guest.delete('/api/conversations/team-a?exported=none')).status).toBe(404);
  expect(await api.troupe.events('secret')).toEqual(before);
  expect(await into(opened({ home: 'team-a', thread: 'team-a.d-000000000000', root: 'team-a' }))).toBe(201);
});

test('a stream over all conversations has the granted ones only', async () => {
  const clock = createFakeClock();
  await using api = await startGuarded({ clock, company: COMPANY });
  const guest = await withKey(api, { scopes: ['read'], conversations: ['root'] });
  const response = await api.app.request('/api/events', { headers: guest.headers });
  const reading = readStream(response, (seen) =>
    seen.some(({ data }) => (data['body'] as { content?: string } | undefined)?.content === 'done'),
  );
  await api.troupe.send('secret', { ...MESSAGE, content: 'psst' });
  await api.troupe.idle();
  await api.troupe.send('root', { author: ANA, to: ['boss'], content: 'x' });
  await api.troupe.idle();
  const frames = await reading;
  const from = new Set(frames.map(({ data }) => String(data['conversation'])));
  expect([...from].every((id) => id === 'root' || id.startsWith('root.d-'))).toBe(true);
  expect(from.size).toBe(2);
  expect(JSON.stringify(frames)).not.toContain('psst');
});

test('a stream of a conversation that was not granted is refused, whether it exists or not', async () => {
  await using api = await startGuarded();
  await api.troupe.send('secret', MESSAGE);
  const guest = await withKey(api, { scopes: ['read'], conversations: ['hall'] });
  for (const id of ['secret', 'nobodys']) {
    const { status, body } = await guest.get(`/api/events?conversation=${id}&after=0`);
    expect([status, body]).toMatchObject([404, { error: { code: 'conversation_unknown' } }]);
  }
});

test('a stream continues while credentials cannot be checked, and ends once one is found invalid', async () => {
  const clock = createFakeClock();
  const principal = { id: 'jwt:ana', tenant: 'default' as never, scopes: ['read'] as const, author: null };
  let state: 'known' | 'away' | 'gone' = 'known';
  await using api = await startGuarded({
    clock,
    authenticate: async () => {
      if (state === 'away') throw new TroupeError('store_unavailable', 'the store is away');
      return state === 'known' ? { ...principal, conversations: null } : null;
    },
  });
  const headers = { authorization: 'Bearer x' };
  const response = await api.app.request('/api/events?conversation=hall', { headers });
  const heard = Promise.withResolvers<void>();
  const reading = readStream(response, (frames) => {
    if (JSON.stringify(frames).includes('still heard')) heard.resolve();
    return false;
  });
  state = 'away';
  await clock.advance(20_000);
  await api.troupe.send('hall', { ...MESSAGE, content: 'still heard' });
  await Promise.race([heard.promise, reading]);
  state = 'gone';
  await clock.advance(5_000);
  expect(JSON.stringify(await reading)).toContain('still heard');
});

test('a stream ends within 5 seconds once the caller is granted other conversations', async () => {
  const clock = createFakeClock();
  let conversations = ['hall'];
  const principal = { id: 'jwt:ana', tenant: 'default' as never, scopes: ['read'] as const, author: null };
  await using api = await startGuarded({
    clock,
    authenticate: async () => ({ ...principal, conversations }),
  });
  const headers = { authorization: 'Bearer x' };
  const response = await api.app.request('/api/events?conversation=hall', { headers });
  const reading = readStream(response, () => false);
  await clock.advance(10_000);
  conversations = ['lobby'];
  await clock.advance(5_000);
  await reading;
  expect((await api.get('/api/events?conversation=hall', { headers })).status).toBe(404);
});
