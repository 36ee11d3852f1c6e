import { expect, expectTypeOf, onTestFinished, test } from 'vitest';
import { createClient } from '../../src/http/api/client.ts';
import { serveHttp } from '../../src/http/api/index.ts';
import { ANA, startApi } from './harness.ts';

test('the client sends requests, collects parts, follows streams, and throws what the server refuses', async () => {
  await using api = await startApi();
  const server = await serveHttp(api.app, { port: 0 });
  onTestFinished(() => server.close());
  const client = createClient({ url: `${server.url}/` });
  const params = { conversation: 'c1' };
  const body = { author: ANA, to: ['echo'], content: 'Hello' };
  const { event } = await client.request('POST /api/conversations/{conversation}/events', { params, body });
  expect(event).toMatchObject({ kind: 'message', conversation: 'c1' });
  await api.troupe.idle();

  const { events, head } = await client.request('GET /api/conversations/{conversation}/events', {
    params,
    query: { limit: 1 },
  });
  expectTypeOf(head).toBeNumber();
  expect(events).toEqual([event]);
  const trace = await client.whole('GET /api/turns/{turn}', 'events', { params: { turn: 'c1:echo:1' } });
  expect(trace).not.toHaveProperty('next');
  expect(trace.events.length).toBeGreaterThan(1);
  const { rows } = await client.request('GET /api/conversations/{conversation}/rows', {
    params,
    query: { kind: ['message', 'turn.done'] },
  });
  expect(new Set(rows.map(({ kind }) => kind))).toEqual(new Set(['message', 'turn.done']));

  const over = new AbortController();
  const seqs: number[] = [];
  for await (const frame of await client.events({ conversation: 'c1', after: 0 }, over.signal)) {
    if (frame.type === 'event') seqs.push(frame.event.seq);
    if (seqs.length === head) over.abort();
  }
  expect(seqs).toEqual(Array.from({ length: head }, (_, index) => index + 1));

  const unknown = client.request('GET /api/conversations/{conversation}', {
    params: { conversation: 'none' },
  });
  await expect(unknown).rejects.toMatchObject({ code: 'conversation_unknown' });
  // @ts-expect-error A parameter of the path is missing.
  await expect(client.request('GET /api/conversations/{conversation}', { params: {} })).rejects.toThrow();
});
