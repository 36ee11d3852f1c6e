import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import type { Troupe, Watcher } from '../../src/library/troupe.ts';
import { ANA, readStream, startApi, type StreamFrame } from './harness.ts';

const SEQS = (frames: StreamFrame[]) =>
  frames.filter(({ event }) => event === 'event').map(({ id }) => Number(id));
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

test('a stream replays the stored events and then follows new ones, each once and in order', async () => {
  await using api = await startApi();
  const send = (content: string) => api.troupe.send('c1', { author: ANA, content });
  for (const n of upTo(3)) await send(`${n}`);
  const response = await api.app.request('/api/events?conversation=c1');
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  const reading = readStream(response, (frames) => SEQS(frames).length >= 6);
  for (const n of upTo(3)) await send(`later ${n}`);
  const frames = await reading;
  expect(SEQS(frames)).toEqual(upTo(6));
  expect(frames[5]).toMatchObject({ event: 'event', data: { seq: 6, body: { content: 'later 3' } } });
});

test.each([
  ['?after', '/api/events?conversation=c1&after=2', {}],
  ['Last-Event-ID, which counts more', '/api/events?conversation=c1&after=0', { 'last-event-id': '2' }],
])('a stream resumes by %s', async (_, path, headers) => {
  await using api = await startApi();
  for (const n of upTo(4)) await api.troupe.send('c1', { author: ANA, content: `${n}` });
  const frames = await readStream(await api.app.request(path, { headers }), (seen) => SEQS(seen).length >= 2);
  expect(SEQS(frames)).toEqual([3, 4]);
});

test('events that arrive during the replay, twice, late or unannounced, are neither lost nor repeated', async () => {
  let watcher: Watcher = () => {};
  let reads = 0;
  const intrude = (troupe: Troupe): Troupe => ({
    ...troupe,
    watch(next) {
      watcher = next;
      // Announces only the events of this test.
      return () => {};
    },
    async events(conversation, range) {
      reads += 1;
      const page = await troupe.events(conversation, range);
      if (reads > 1) return page;
      // Two more events arrive between the read and its answer; the first is announced twice, the second is not.
      const { event } = await troupe.send('c1', { author: ANA, content: '4' });
      watcher({ type: 'event', event });
      watcher({ type: 'event', event });
      await troupe.send('c1', { author: ANA, content: '5' });
      const last = await troupe.send('c1', { author: ANA, content: '6' });
      watcher({ type: 'event', event: last.event });
      watcher({ type: 'event', event });
      return page;
    },
  });
  await using api = await startApi({ wrap: intrude });
  for (const n of upTo(3)) await api.troupe.send('c1', { author: ANA, content: `${n}` });
  const response = await api.app.request('/api/events?conversation=c1');
  const frames = await readStream(response, (seen) => SEQS(seen).length >= 6);
  expect(SEQS(frames)).toEqual(upTo(6));
});

test('a reader that falls 1,000 events behind misses none', async () => {
  await using api = await startApi();
  const response = await api.app.request('/api/events?conversation=c1');
  const reader = response.body?.getReader();
  // The head of the stream is sent and the watch is active; nobody reads while the events arrive.
  await reader?.read();
  const started = reader?.read();
  const send = () => api.troupe.send('c1', { author: ANA, content: 'x' });
  for (let n = 0; n < 30; n++) await Promise.all(Array.from({ length: 50 }, send));
  const first = new TextDecoder().decode((await started)?.value as Uint8Array);
  expect(first).toContain('id: 1\n');
  reader?.releaseLock();
  const frames = await readStream(response, (seen) => SEQS(seen).length >= 1_499);
  expect(SEQS(frames)).toEqual(upTo(1_500).slice(1));
});

test('a reply is streamed in frames that cannot be resumed, before its event', async () => {
  await using api = await startApi();
  const response = await api.app.request('/api/events?conversation=c1');
  const reading = readStream(response, (frames) => frames.at(-1)?.data['kind'] === 'turn.done');
  await api.troupe.send('c1', { author: ANA, to: ['echo'], content: 'Hello' });
  const frames = await reading;
  const deltas = frames.filter(({ event }) => event === 'stream');
  expect(deltas.every(({ id }) => id === null)).toBe(true);
  expect(deltas[0]?.data).toMatchObject({ conversation: 'c1', agent: 'echo', turn: 'c1:echo:1' });
  expect(deltas.map(({ data }) => data['text']).join('')).toBe('answer 1');
  const message = frames.findIndex(({ data }) => data['kind'] === 'message' && data['seq'] !== 1);
  expect(frames.lastIndexOf(deltas.at(-1) as StreamFrame)).toBeLessThan(message);
  expect(SEQS(frames)).toEqual(upTo(SEQS(frames).length));
});

test('a stream of a conversation that does not exist yet waits for it', async () => {
  await using api = await startApi();
  const response = await api.app.request('/api/events?conversation=later');
  const reading = readStream(response, (frames) => frames.length > 0);
  await api.troupe.send('other-one', { author: ANA, content: 'x' });
  await api.troupe.send('later', { author: ANA, content: 'y' });
  expect((await reading)[0]).toMatchObject({ id: '1', data: { conversation: 'later' } });
});

/** Names and seqs of the frames that are of the log. */
const TOLD = (frames: StreamFrame[]) =>
  frames.flatMap(({ event, id }) => (event === 'event' || event === 'reset' ? [`${event} ${id}`] : []));

test.each([1, 3, 4, 9])(
  'a reader whose conversation of 3 events was deleted and begun anew with %i is told, and gets the events',
  async (count) => {
    const clock = createFakeClock();
    await using api = await startApi({ clock });
    const send = (content: string) => api.troupe.send('c1', { author: ANA, content });
    for (const n of upTo(3)) await send(`${n}`);
    const open = await api.app.request('/api/events?conversation=c1');
    let isReplayed = () => {};
    const replayed = new Promise<void>((resolve) => (isReplayed = resolve));
    const reading = readStream(open, (frames) => {
      if (SEQS(frames).length >= 3) isReplayed();
      return SEQS(frames).length >= 3 + count;
    });
    await replayed;
    await api.troupe.delete('c1', { exported: 'none' });
    await clock.advance(1);
    for (const n of upTo(count)) await send(`anew ${n}`);
    const anew = ['reset 0', ...upTo(count).map((n) => `event ${n}`)];
    expect(TOLD(await reading)).toEqual(['event 1', 'event 2', 'event 3', ...anew]);
    const headers = { 'last-event-id': '10' };
    const back = await api.app.request('/api/events?conversation=c1', { headers });
    expect(TOLD(await readStream(back, (frames) => SEQS(frames).length >= count))).toEqual(anew);
  },
);

test('a reader with a cursor of a conversation that was deleted is told, before and after it is begun anew', async () => {
  await using api = await startApi();
  const response = await api.app.request('/api/events?conversation=c1&after=7');
  const reading = readStream(response, (frames) => SEQS(frames).length > 0);
  const [first] = await readStream(
    await api.app.request('/api/events?conversation=c1&after=7'),
    (frames) => frames.length > 0,
  );
  expect(first).toMatchObject({ event: 'reset', id: '0', data: { conversation: 'c1' } });
  await api.troupe.send('c1', { author: ANA, content: 'x' });
  expect(TOLD(await reading)).toEqual(['reset 0', 'event 1']);
});

test('without a conversation the events of all are streamed, and cannot be resumed', async () => {
  await using api = await startApi();
  await api.troupe.send('old', { author: ANA, content: 'x' });
  const response = await api.app.request('/api/events');
  const reading = readStream(response, (frames) => frames.length >= 2);
  // The watch begins with the first read, which the line above requested.
  await api.troupe.send('a', { author: ANA, content: 'x' });
  await api.troupe.send('b', { author: ANA, content: 'x' });
  const frames = await reading;
  expect(frames.map(({ id, data }) => [id, data['conversation']])).toEqual([
    [null, 'a'],
    [null, 'b'],
  ]);
  for (const init of [{ headers: { 'last-event-id': '3' } }, {}]) {
    const path = 'headers' in init ? '/api/events' : '/api/events?after=3';
    const refused = await api.get(path, init);
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({ error: { code: 'event_invalid', data: { path: 'conversation' } } });
  }
});

test('a quiet stream sends a heartbeat every 15 seconds', async () => {
  const clock = createFakeClock();
  await using api = await startApi({ clock });
  const response = await api.app.request('/api/events?conversation=c1');
  const reader = response.body?.getReader();
  await reader?.read();
  const next = reader?.read();
  let isAnswered = false;
  void next?.then(() => (isAnswered = true));
  // The stream polls the log in between, which takes as long as the store takes.
  for (let passed = 0; passed < 15_000; passed += 1_000) {
    expect(isAnswered).toBe(false);
    while (clock.sleeping() === 0) await new Promise((done) => setImmediate(done));
    await clock.advance(1_000);
  }
  expect(new TextDecoder().decode((await next)?.value as Uint8Array)).toBe(': still here\n\n');
  await reader?.cancel();
});

test('a reader that leaves is unsubscribed', async () => {
  let watching = 0;
  const counted = (troupe: Troupe): Troupe => ({
    ...troupe,
    watch(watcher) {
      watching += 1;
      const off = troupe.watch(watcher);
      return () => {
        watching -= 1;
        off();
      };
    },
  });
  await using api = await startApi({ wrap: counted });
  const response = await api.app.request('/api/events?conversation=c1');
  const reader = response.body?.getReader();
  await reader?.read();
  const pending = reader?.read();
  await new Promise((done) => setImmediate(done));
  expect(watching).toBe(1);
  await reader?.cancel();
  await pending;
  expect(watching).toBe(0);
});
