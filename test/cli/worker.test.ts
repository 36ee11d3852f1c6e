import { expect } from 'vitest';
import { ask, siteTest } from './distributed.ts';
import { readEvents } from './read-events.ts';

const ANA = { kind: 'user', id: 'ana', name: 'Ana' };

async function post(url: string, conversation: string, to: string): Promise<void> {
  const response = await ask(`${url}/api/conversations/${conversation}/events`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ author: ANA, to: [to], content: 'x' }),
  });
  expect(response.status).toBe(201);
}

async function log(url: string, conversation: string): Promise<Record<string, unknown>[]> {
  const response = await ask(`${url}/api/conversations/${conversation}/events`);
  return ((await response.json()) as { events: Record<string, unknown>[] }).events;
}

/** The agent `long` says 36 letters, one at a time, and `quick` says one. Read by processes that start later. */
function writeAgents(
  { place }: { place: { write: (file: string, content: unknown) => void } },
  longDelayMs: number,
  limits: { leaseMs?: number } = {},
) {
  const agent = (id: string, reply: string, chunkDelayMs: number) => {
    const script = { rules: [{ reply, chunk: 1, chunkDelayMs }] };
    return { id, name: id, provider: 'scripted', model: 'test', script };
  };
  const agents = [agent('long', 'x'.repeat(36), longDelayMs), agent('quick', 'x', 0)];
  place.write('agents.json', { agents, limits });
}

/** With this delay the reply takes 36 minutes: no machine is so slow that it has ended before the test looks. */
const FOREVER_MS = 60_000;

siteTest(
  'a worker that gets a signal during a turn ends in time, and another one answers once',
  async (site) => {
    writeAgents(site, FOREVER_MS);
    const api = await site.serve();
    const first = await site.worker();
    const stream = await ask(`${api.url}/api/events?conversation=c1`);
    await post(api.url, 'c1', 'long');
    await readEvents(stream, (seen) => seen.some(({ event }) => event === 'stream'));
    first.child.kill('SIGTERM');
    writeAgents(site, 1);
    const second = await site.worker();
    expect(await first.exited).toBe(0);
    const rest = await ask(`${api.url}/api/events?conversation=c1&after=0`);
    await readEvents(rest, (seen) => seen.some(({ data }) => data['kind'] === 'turn.done'));
    const said = (await log(api.url, 'c1')).filter(({ kind }) => kind === 'message');
    expect(said.map(({ author }) => (author as { id: string }).id)).toEqual(['ana', 'long']);
    expect(second.child.exitCode).toBe(null);
  },
);

siteTest('a worker reports health, readiness and metrics, and is not ready once it stops', async (site) => {
  writeAgents(site, FOREVER_MS);
  const api = await site.serve();
  const worker = await site.worker([], { status: true });
  expect(worker.ready).toMatchObject({ worker: expect.stringContaining(':'), concurrency: 64 });
  const stream = await ask(`${api.url}/api/events?conversation=c1&after=0`);
  await post(api.url, 'c1', 'quick');
  await readEvents(stream, (seen) => seen.some(({ data }) => data['kind'] === 'turn.done'));
  expect((await fetch(`${worker.status}/healthz`)).status).toBe(200);
  expect(await (await fetch(`${worker.status}/readyz`)).json()).toEqual({
    status: 'ok',
    store: 'ok',
    queue: 'ok',
  });
  expect((await fetch(`${worker.status}/api/conversations`)).status).toBe(404);
  const metrics = async (url: string, get: typeof ask = fetch) => await (await get(`${url}/metrics`)).text();
  expect(await metrics(worker.status)).toMatch(/^troupe_turns_total\{tenant="default",outcome="done"\} 1$/m);
  expect(await metrics(worker.status)).toMatch(/^troupe_wake_wait_seconds_count [1-9]/m);
  expect(await metrics(worker.status)).toMatch(/^troupe_activation_seconds_count\{outcome="done"\} [1-9]/m);
  expect(await metrics(worker.status)).toMatch(/^troupe_queue_wakes\{state="waiting"\} 0$/m);
  expect(await metrics(api.url, ask)).toMatch(/^troupe_turns_total\{tenant="default",outcome="done"\} 0$/m);
  expect(await metrics(api.url, ask)).toMatch(/^troupe_events_appended_total\{tenant="default"\} [1-9]/m);

  const next = await ask(`${api.url}/api/events?conversation=c2`);
  await post(api.url, 'c2', 'long');
  await readEvents(next, (seen) => seen.some(({ event }) => event === 'stream'));
  worker.child.kill('SIGTERM');
  while (!worker.err().includes('finishing'))
    await new Promise((resolve) => worker.child.stderr?.once('data', resolve));
  const stopping = await fetch(`${worker.status}/readyz`);
  expect([stopping.status, await stopping.json()]).toMatchObject([503, { status: 'stopping' }]);
  expect(await worker.exited).toBe(0);
});

siteTest('a second signal ends a worker at once, and its turn is not lost', async (site) => {
  writeAgents(site, FOREVER_MS, { leaseMs: 1_000 });
  const api = await site.serve();
  const worker = await site.worker();
  const stream = await ask(`${api.url}/api/events?conversation=c1`);
  await post(api.url, 'c1', 'long');
  await readEvents(stream, (seen) => seen.some(({ event }) => event === 'stream'));
  worker.child.kill('SIGINT');
  while (!worker.err().includes('finishing'))
    await new Promise((resolve) => worker.child.stderr?.once('data', resolve));
  worker.child.kill('SIGINT');
  expect(await worker.exited).toBe(130);
  writeAgents(site, 1, { leaseMs: 1_000 });
  await site.worker();
  const rest = await ask(`${api.url}/api/events?conversation=c1&after=0`);
  await readEvents(rest, (seen) => seen.some(({ data }) => data['kind'] === 'turn.done'));
  expect((await log(api.url, 'c1')).filter(({ kind }) => kind === 'message')).toHaveLength(2);
});

siteTest('a worker that stalled for longer than --max-lag ends with code 70', async ({ worker }) => {
  const { child, exited, err } = await worker(['--max-lag', '2000']);
  child.kill('SIGSTOP');
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  child.kill('SIGCONT');
  expect(await exited).toBe(70);
  expect(err()).toMatch(/stalled: nothing ran for \d+ ms, and --max-lag is 2000 ms/);
});
