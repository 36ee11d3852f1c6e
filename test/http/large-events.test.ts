import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createProjectionCache } from '../../src/http/projection-caches.ts';
import { MAX_SCANNED, scanRows } from '../../src/http/scan.ts';
import type { Event } from '../../src/events/index.ts';
import { untilHolds } from '../support/until-holds.ts';
import { ANA, type Harness, readStream, startApi } from './harness.ts';

const EVENTS = 14;
const MILLION = 1_000_000;
const MIB = 1_048_576;
const SEQS = Array.from({ length: EVENTS }, (_, index) => index + 1);

/** A conversation of so many messages of a million characters each. */
async function stage(): Promise<Harness> {
  // A search stops after two seconds; this clock stands still, so slow machines do not time out.
  const api = await startApi({ clock: { ...systemClock, now: () => 0 } });
  for (const seq of SEQS) {
    const word = seq === 3 ? ' needle ' : '';
    await api.troupe.send('c', { author: ANA, content: `${seq} ${word}`.padEnd(MILLION, 'x') });
  }
  return api;
}

test('a page of large events is short, and the following pages have the rest', async () => {
  await using api = await stage();
  const read: number[] = [];
  for (let after = 0, head = 1; after < head;) {
    const { status, body } = await api.get(`/api/conversations/c/events?limit=5000&after=${after}`);
    expect([status, body['head']]).toEqual([200, EVENTS]);
    const events = body['events'] as Event[];
    const bytes = Buffer.byteLength(JSON.stringify(events));
    // The last event of a page brings it to 4 MiB.
    expect(bytes).toBeLessThan(4 * MIB + 1.1 * MILLION);
    read.push(...events.map(({ seq }) => seq));
    after = read.at(-1) ?? EVENTS;
    head = body['head'] as number;
  }
  expect(read).toEqual(SEQS);
});

test('large events are exported, streamed, folded, listed and found like small ones', async () => {
  await using api = await stage();
  let lines = '';
  for await (const line of api.troupe.export('c')) lines += line;
  expect(lines.split('\n').filter((line) => line.includes('"kind":"message"'))).toHaveLength(EVENTS);

  const frames = await readStream(
    await api.app.request('/api/events?conversation=c&after=0'),
    (seen) => seen.filter(({ event }) => event === 'event').length >= EVENTS,
  );
  expect(frames.flatMap(({ id }) => (id === null ? [] : [Number(id)]))).toEqual(SEQS);

  expect((await api.get('/api/conversations/c')).body).toMatchObject({ head: EVENTS, mode: 'agent' });
  for (const at of [3, 9, EVENTS])
    expect((await api.get(`/api/conversations/c/snapshot?at=${at}`)).body).toMatchObject({ seq: at });

  const rows = async (query: string) => (await api.get(`/api/conversations/c/rows?${query}`)).body;
  const seqs = (body: Record<string, unknown>) => (body['rows'] as { seq: number }[]).map(({ seq }) => seq);
  expect(seqs(await rows('limit=1'))).toEqual([EVENTS]);
  expect(seqs(await rows('limit=500'))).toEqual(SEQS);
  expect(seqs(await rows('limit=500&after=0'))).toEqual(SEQS);
  expect(await rows('q=needle')).toMatchObject({ rows: [{ seq: 3 }], more: false });
  await untilHolds(async () => {
    const { body: found } = await api.get('/api/search?q=needle');
    expect(found).toMatchObject({ hits: [{ conversation: 'c', row: { seq: 3 } }], unread: 0, next: null });
  });
});

test('a projection catches up although its last event fills a page by itself', async () => {
  await using api = await startApi();
  const small = { events: (c: string, range?: object) => api.troupe.events(c, { ...range, maxBytes: 1 }) };
  const cache = createProjectionCache(small);
  for (const head of [1, 2, 3, 4]) {
    await api.troupe.send('c', { author: ANA, content: `${head}` });
    if (head !== 3) expect(await cache.latest('c')).toMatchObject({ seq: head });
  }
});

test('an answer reads a limited number of pages and names the next one', async () => {
  await using api = await startApi();
  for (let sent = 0; sent < 60; sent += 1) await api.troupe.send('c', { author: ANA, content: `${sent}` });
  let reads = 0;
  const small = {
    events: (c: string, range?: object) => {
      reads += 1;
      return api.troupe.events(c, { ...range, maxBytes: 1 });
    },
  };
  expect(MAX_SCANNED).toBeGreaterThan(60);
  for (const start of [{}, { after: 0 }]) {
    reads = 0;
    const answer = await scanRows(small, 'c', { ...start, limit: 500, query: 'nowhere' });
    expect(answer).toMatchObject({ rows: [], head: 60, more: true, next: expect.any(Number) });
    expect(reads).toBeLessThan(200);
    const rest = 'after' in start ? { after: answer.next ?? 0 } : { before: answer.next ?? 0 };
    expect(await scanRows(small, 'c', { ...rest, limit: 500 })).toMatchObject({ more: false, next: null });
  }
});

test('other callers are served between the pages of one caller', async () => {
  await using api = await stage();
  const cache = createProjectionCache(api.troupe);
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await cache.latest('c');
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual(2);
});
