import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { type Asker, startGuarded, withKey } from './access.ts';
import { ANA, type Answer, readStream, scripted } from './harness.ts';

const MESSAGE = { author: ANA, to: ['echo'], content: 'a secret of acme' };
const NOBODYS = 'nobodys';

/** The answer without the requested ids. */
function shape({ status, headers, body }: Answer, ids: string[]): unknown {
  let text = JSON.stringify(body);
  for (const id of ids) text = text.replaceAll(id, 'ID');
  return [status, headers.get('content-type'), headers.get('retry-after'), text];
}

const READS = [
  '/api/conversations/ID',
  '/api/conversations/ID/events',
  '/api/conversations/ID/actors',
  '/api/conversations/ID/snapshot',
  '/api/conversations/ID/snapshot?at=1',
  '/api/conversations/ID/rows',
  '/api/conversations/ID/rows?after=0',
  '/api/conversations/ID/tasks',
  '/api/conversations/ID/answer?seq=1',
  '/api/conversations/ID/agents/echo/prompt',
  '/api/conversations/ID/agents/echo/cache-cost',
  '/api/conversations/ID/cost',
  '/api/conversations/ID/export',
  '/api/conversations/ID/export?format=html',
  '/api/conversations/ID/export?threads=true',
  '/api/turns/ID:echo:1',
  '/api/turns/ID:echo:1/prompt',
  '/api/turns/ID:echo:1/diff/next',
];
const COMMANDS = [
  { command: 'abort', turn: 'ID:echo:1' },
  { command: 'retry', turn: 'ID:echo:1' },
  { command: 'pause', conversation: 'ID', agent: 'echo' },
  { command: 'mode', conversation: 'ID', mode: 'chat' },
  { command: 'answer', conversation: 'ID', question: 'q', content: 'x' },
  { command: 'decide', conversation: 'ID', request: 'r', approved: true },
  { command: 'cancelTask', conversation: 'ID', task: 't' },
  { command: 'archive', conversation: 'ID' },
  { command: 'dispatch', conversation: 'ID', event: 'e' },
  { command: 'fork', conversation: 'ID', seq: 1 },
  { command: 'fork', turn: 'ID:echo:1' },
];

async function answersTo(who: Asker, id: string): Promise<unknown[]> {
  const answers: Answer[] = [];
  for (const path of READS) answers.push(await who.get(path.replaceAll('ID', id)));
  for (const command of COMMANDS) {
    const named = JSON.parse(JSON.stringify(command).replaceAll('ID', id)) as object;
    answers.push(await who.post('/api/commands', named));
  }
  answers.push(await who.delete(`/api/conversations/${id}?exported=none`));
  return answers.map((answer) => shape(answer, [id]));
}

test('a conversation of another tenant gives the same answers as an unknown one', async () => {
  await using api = await startGuarded();
  const acme = await withKey(api, {}, 'acme');
  const other = await withKey(api, {}, 'other');
  const house = await withKey(api);
  await acme.post('/api/conversations/acmes/events', MESSAGE);
  await api.troupe.idle();
  const before = await api.troupe.forTenant('acme').events('acmes');
  expect(before.events.some(({ kind }) => kind === 'turn.done')).toBe(true);
  for (const stranger of [other, house])
    expect(await answersTo(stranger, 'acmes')).toEqual(await answersTo(stranger, NOBODYS));
  expect(await api.troupe.forTenant('acme').events('acmes')).toEqual(before);
});

test('a conversation that a key was not granted gives the same answers as an unknown one', async () => {
  await using api = await startGuarded();
  const house = await withKey(api);
  const guest = await withKey(api, { conversations: ['hall', 'team-*'] });
  await house.post('/api/conversations/secret/events', MESSAGE);
  await api.troupe.idle();
  const before = await api.troupe.events('secret');
  expect(await answersTo(guest, 'secret')).toEqual(await answersTo(guest, NOBODYS));
  expect(await api.troupe.events('secret')).toEqual(before);
});

test("lists, searches, budgets and queued work cover only the caller's tenant", async () => {
  await using api = await startGuarded({
    company: { agents: [scripted('echo', [{ reply: 'x' }])], budgets: { tenant: { tokens: 1_000_000 } } },
  });
  const acme = await withKey(api, {}, 'acme');
  const other = await withKey(api, {}, 'other');
  await acme.post('/api/conversations/c1/events', MESSAGE);
  await api.troupe.idle();
  expect((await other.get('/api/conversations')).body).toMatchObject({ conversations: [] });
  // The inbox and searches read the logs when they are asked, for a limited time.
  await expect.poll(async () => (await acme.get('/api/inbox')).body['unread']).toBe(0);
  expect((await other.get('/api/inbox')).body).toMatchObject({ lines: [], unread: 0, counts: { quiet: 0 } });
  expect((await acme.get('/api/inbox')).body).toMatchObject({ lines: [{ id: 'c1' }], counts: { quiet: 1 } });
  expect((await other.get('/api/search?q=secret')).body).toMatchObject({ hits: [] });
  expect((await acme.get('/api/search?q=secret')).body).toMatchObject({ hits: [{ conversation: 'c1' }] });
  const spent = async (who: Asker) => {
    const { budgets } = (await who.get('/api/budgets')).body as { budgets: { spent: { tokens: number } }[] };
    return budgets[0]?.spent.tokens ?? 0;
  };
  expect(await spent(acme)).toBeGreaterThan(0);
  expect(await spent(other)).toBe(0);
});

test('two tenants may use the same ids of conversations, events and pages', async () => {
  await using api = await startGuarded();
  const acme = await withKey(api, {}, 'acme');
  const other = await withKey(api, {}, 'other');
  for (const [who, content] of [
    [acme, 'of acme'],
    [other, 'of other'],
  ] as const) {
    const { status } = await who.post('/api/conversations/c1/events', { ...MESSAGE, id: 'same', content });
    expect(status).toBe(201);
  }
  await api.troupe.idle();
  // Projections of a conversation are cached, but never across tenants.
  for (const path of ['snapshot', 'rows', 'events', 'export', 'export?format=html']) {
    const read = async ({ headers }: Asker) =>
      (await api.app.request(`/api/conversations/c1/${path}`, { headers })).text();
    const [first, second] = [await read(acme), await read(other)];
    expect([first.includes('of acme'), first.includes('of other')]).toEqual([true, false]);
    expect([second.includes('of acme'), second.includes('of other')]).toEqual([false, true]);
  }
});

test.each(['/api/events', '/api/events?conversation=c1&after=0'])(
  'a stream of %s has no events of another tenant',
  async (path) => {
    const clock = createFakeClock();
    await using api = await startGuarded({ clock });
    const acme = await withKey(api, {}, 'acme');
    const other = await withKey(api, {}, 'other');
    const response = await api.app.request(path, { headers: other.headers });
    const frames = readStream(response, (seen) => seen.some(({ data }) => data['kind'] === 'turn.done'));
    await acme.post('/api/conversations/c1/events', MESSAGE);
    await api.troupe.idle();
    await other.post('/api/conversations/c1/events', { ...MESSAGE, content: 'own words' });
    await api.troupe.idle();
    const told = JSON.stringify(await frames);
    expect(told).toContain('own words');
    expect(told).not.toContain('acme');
  },
);
