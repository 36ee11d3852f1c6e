import { beforeAll, describe, expect, test } from 'vitest';
import type * as z from 'zod';
import { SearchAnswer } from '../../src/http/answers.ts';
import { untilHolds } from '../support/until-holds.ts';
import { ANA, type Harness, scripted, startApi } from './harness.ts';

const COMPANY = {
  agents: [
    scripted('worker', [{ reply: 'answer {{n}}' }]),
    scripted('other', [{ reply: 'Größe, gefunden' }]),
  ],
};

let api: Harness;

async function say(conversation: string, content: string, to: string[] = []): Promise<void> {
  await api.troupe.send(conversation, { author: ANA, to, content });
}

/** Imports a log, which wakes no agent. */
async function fill(conversation: string, lines: number): Promise<void> {
  async function* source() {
    for (let line = 1; line <= lines; line += 1)
      yield `${JSON.stringify({ role: 'user', content: `line ${line}` })}\n`;
  }
  await api.troupe.import(source(), { conversation, agent: 'worker', format: 'openai' });
}

async function search(query: string): Promise<z.infer<typeof SearchAnswer>> {
  const { status, body } = await api.get(`/api/search?${query}`);
  expect([status, body]).toMatchObject([200, {}]);
  return SearchAnswer.parse(body);
}

async function found(query: string): Promise<string[]> {
  return (await search(query)).hits.map(({ conversation, row }) => `${conversation}:${row.seq}`);
}

describe('a search', () => {
  beforeAll(async () => {
    api = await startApi({ company: COMPANY as never });
    await say('oldest', `${'before '.repeat(60)}THE "Needle" was İn the hay-stack ${'after '.repeat(60)}`);
    await say('polite', 'Guten Tag', ['other']);
    await say('asian', '送料無料の貨物');
    await fill('long', 100);
    for (let room = 0; room < 60; room += 1) await say(`room-${room}`, `parcel number ${room}`);
    await api.troupe.idle();
    await untilHolds(async () => expect((await search('q=x')).unread).toBe(0));
    return () => api[Symbol.asyncDispose]();
  });

  test('is narrowed to who wrote it, by id or name, and to kinds of events', async () => {
    expect(await found('q=parcel&author=ana&limit=3')).toHaveLength(3);
    expect(await found('q=parcel&author=ANA&limit=3')).toHaveLength(3);
    expect(await found('q=parcel&author=worker')).toEqual([]);
    expect(await found('q=gefunden&author=other&kind=message')).toHaveLength(1);
    expect(await found('q=gefunden&kind=tool.result,question')).toEqual([]);
  });

  test('finds what is in none of the newest conversations, and where', async () => {
    const { hits, next, unread } = await search('q=needle');
    expect([hits.length, next, unread]).toEqual([1, null, 0]);
    const [{ conversation, row, excerpt, marks }] = hits as [(typeof hits)[0]];
    expect([conversation, row.seq]).toEqual(['oldest', 1]);
    expect(excerpt).toMatch(/^….*THE "Needle" was .*…$/);
    expect(marks.map(([start, end]) => excerpt.slice(start, end))).toEqual(['Needle']);
    expect(excerpt.length).toBeLessThanOrEqual(162);
  });

  test.each([
    ['stack needle', ['oldest:1']],
    ['hay-st', ['oldest:1']],
    ['"the hay"', ['oldest:1']],
    ['"hay the"', []],
    ['eedle', []],
    ['need nowhere', []],
    ['größe', ['polite:5']],
    ['無料', ['asian:1']],
    ['料無 貨', ['asian:1']],
    ['無貨', []],
    ['number 59', ['room-59:1']],
    ['number 5', ['room-5:1']],
    ['…', []],
  ])('for %s finds %j', async (q, expected) => {
    expect(await found(`q=${encodeURIComponent(q)}`)).toEqual(expected);
  });

  test('is paged, each hit once, the newest first', async () => {
    const all: string[] = [];
    for (let after = ''; ;) {
      const { hits, next } = await search(`q=line&limit=37${after}`);
      all.push(...hits.map(({ row }) => `${row.seq}`));
      if (next === null) break;
      after = `&after=${encodeURIComponent(next)}`;
    }
    const seqs = Array.from({ length: 100 }, (_, index) => index + 1);
    expect(all).toEqual([...seqs].reverse().map((seq) => `${seq + Number(all.at(-1)) - 1}`));
    const parcels = await found('q=parcel&limit=100');
    expect(new Set(parcels).size).toBe(60);
    expect(await api.get('/api/search?q=line&after=x')).toMatchObject({ status: 400 });
  });

  test('is narrowed by conversation, agent, state and time', async () => {
    expect(await found('q=parcel&conversation=room-7')).toEqual(['room-7:1']);
    expect(await found('q=gefunden&agent=other')).toEqual(['polite:5']);
    expect(await found('q=gefunden&agent=worker')).toEqual([]);
    expect(await found('q=gefunden&state=quiet')).toEqual(['polite:5']);
    expect(await found('q=gefunden&state=failed,running')).toEqual([]);
    const { at } = (await search('q=needle')).hits[0]!.row;
    expect(await found(`q=needle&from=${at}&to=${at + 1}`)).toEqual(['oldest:1']);
    expect(await found(`q=needle&to=${at}`)).toEqual([]);
    expect(await found(`q=needle&from=${at + 1}`)).toEqual([]);
  });

  test('knows what is added and forgets what is deleted', async () => {
    await say('oldest', 'second needle');
    await untilHolds(async () => expect(await found('q=needle')).toEqual(['oldest:2', 'oldest:1']));
    await api.troupe.delete('oldest', { exported: 'none' });
    expect(await found('q=needle')).toEqual([]);
    await say('oldest', 'another life');
    await untilHolds(async () => expect(await found('q=another+life')).toEqual(['oldest:1']));
    expect(await found('q=needle')).toEqual([]);
  });
});
