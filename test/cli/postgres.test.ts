import { expect } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import { checkLog } from '../../packages/testing/src/check-log.ts';
import { ask, postgresAloneTest, postgresSiteTest, type Site } from './distributed.ts';
import { readEvents } from './read-events.ts';

const ANA = { kind: 'user', id: 'ana', name: 'Ana' };
const CONVERSATIONS = Array.from({ length: 6 }, (_, index) => `c${index}`);
const AGENTS = ['bo', 'cy'];
const MESSAGES = 3;

async function post(url: string, conversation: string, content: string): Promise<void> {
  const response = await ask(`${url}/api/conversations/${conversation}/events`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ author: ANA, to: AGENTS, content }),
  });
  expect(response.status).toBe(201);
}

async function log(url: string, conversation: string): Promise<Event[]> {
  const response = await ask(`${url}/api/conversations/${conversation}/events?limit=1000`);
  return ((await response.json()) as { events: Event[] }).events;
}

const isChecked = {
  status: expect.stringMatching(/^(?:ok|warning)$/),
  detail: expect.stringMatching(/: \d+/),
};

postgresSiteTest(
  'on PostgreSQL and Redis a killed worker loses no message, and none is answered twice',
  async (site) => {
    const redis = { name: 'redis', status: 'ok' };
    await killOneOfTwo(site, [{ name: 'postgres', ...isChecked }, redis]);
  },
);

postgresAloneTest('on PostgreSQL alone neither', async (site) => {
  const { api, doctor } = await killOneOfTwo(site, [{ name: 'postgres', ...isChecked }]);
  expect(api.ready).not.toHaveProperty('redis');
  expect((doctor['checks'] as { name: string }[]).map(({ name }) => name)).not.toContain('services');
});

/** `checks`: the last ones of `troupe doctor`. */
async function killOneOfTwo(site: Site, checks: object[]) {
  const script = { rules: [{ reply: 'abcdefghijkl', chunk: 1, chunkDelayMs: 20 }] };
  site.place.write('agents.json', {
    agents: AGENTS.map((id) => ({ id, name: id, provider: 'scripted', model: 'test', script })),
    limits: { leaseMs: 1_500 },
  });
  const [api, one] = await Promise.all([site.serve(), site.worker(), site.worker()]);
  expect(api.ready).toMatchObject({ postgres: expect.stringMatching(/^postgres:/) });
  const stream = await ask(`${api.url}/api/events`);
  const killed = readEvents(stream, (seen) => seen.filter(({ event }) => event === 'stream').length > 20);
  await Promise.all(
    CONVERSATIONS.map(async (conversation) => {
      for (let message = 1; message <= MESSAGES; message += 1)
        await post(api.url, conversation, `message ${message}`);
    }),
  );
  await killed;
  one.child.kill('SIGKILL');
  const covered = (events: readonly Event[]) =>
    events.flatMap((event) => (event.kind === 'turn.done' ? event.body.covers : []));
  await expect
    .poll(
      async () => {
        const logs = await Promise.all(CONVERSATIONS.map((conversation) => log(api.url, conversation)));
        return logs.map((events) => covered(events).length);
      },
      { timeout: 180_000, interval: 200 },
    )
    .toEqual(CONVERSATIONS.map(() => MESSAGES * AGENTS.length));
  for (const conversation of CONVERSATIONS)
    expect(checkLog(await log(api.url, conversation), [])).toEqual([]);

  const { json } = await site.place.run(['doctor', '--verify', '--json'], { env: site.env });
  expect(json).toMatchObject({ ok: true, conversations: CONVERSATIONS.length, unchained: 0 });
  const checked = await site.place.run(['doctor', '--json'], { env: site.env });
  expect((checked.json['checks'] as object[]).slice(-checks.length)).toMatchObject(checks);
  return { api, doctor: checked.json };
}
