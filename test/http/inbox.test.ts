import { expect, test } from 'vitest';
import type * as z from 'zod';
import { InboxAnswer } from '../../src/http/inbox.ts';
import { untilHolds } from '../support/until-holds.ts';
import { ANA, type Harness, scripted, startApi } from './harness.ts';

const COMPANY = {
  agents: [
    {
      ...scripted('worker', [
        { when: { contains: 'break' }, fail: { code: 'provider_auth', message: 'HTTP 401' } } as never,
        {
          when: { contains: 'inquire', step: 1 },
          calls: [{ name: 'ask', args: { question: 'Which colour?', choices: ['red', 'blue'] } }],
        } as never,
        { reply: 'answer {{n}}' },
      ]),
      tools: ['ask'],
    },
    scripted('other', [{ reply: 'fine' }]),
  ],
};

async function say(
  api: Harness,
  conversation: string,
  content: string,
  to = ['worker'],
  author: object = ANA,
) {
  await api.troupe.send(conversation, { author: author as typeof ANA, to, content });
}

async function read(api: Harness, query = ''): Promise<z.infer<typeof InboxAnswer>> {
  const { status, body } = await api.get(`/api/inbox?${query}`);
  expect([status, body]).toMatchObject([200, {}]);
  return InboxAnswer.parse(body);
}

/** All pages of a query. */
async function readAll(api: Harness, query: string): Promise<string[]> {
  const ids: string[] = [];
  for (let after = ''; ;) {
    const { lines, next } = await read(api, `${query}${after}`);
    ids.push(...lines.map(({ id }) => id));
    if (next === null) return ids;
    after = `&after=${encodeURIComponent(next)}`;
  }
}

/** Waits until every conversation is counted. */
/** Reads all that is behind. A slow database takes its time for 190 conversations: what counts is that they become fewer. */
async function counted(api: Harness): Promise<void> {
  for (let left = (await read(api)).unread; left > 0;)
    left = await untilHolds(async () => {
      const { unread } = await read(api);
      expect(unread).toBeLessThan(left);
      return unread;
    });
}

test('says where a conversation stands, and why, in words', async () => {
  await using api = await startApi({ company: COMPANY as never });
  await say(api, 'broken', 'please break');
  await say(api, 'asking', 'please inquire', ['worker'], { kind: 'user', id: 'bob', name: 'Bob' });
  await say(api, 'calm', 'Ship the parcel', ['worker', 'other']);
  await api.troupe.idle();
  await counted(api);
  const { counts, lines } = await read(api);
  expect(counts).toEqual({ failed: 1, asks: 1, running: 0, waiting: 0, quiet: 1 });
  expect(lines).toMatchObject([
    {
      id: 'broken',
      state: 'failed',
      turns: 1,
      failure: { agent: 'worker', code: 'provider_auth' },
      agents: [{ id: 'worker', condition: 'failed' }],
      people: [{ id: 'u1', name: 'Ana' }],
    },
    {
      id: 'asking',
      state: 'asks',
      asks: { count: 1, agent: 'worker', kind: 'question', text: 'Which colour?' },
      people: [{ id: 'bob', name: 'Bob' }],
      failure: null,
    },
    { id: 'calm', state: 'quiet', agentCount: 2, about: { name: 'Ana', text: 'Ship the parcel' } },
  ]);
  const ids = async (query: string) => (await read(api, query)).lines.map(({ id }) => id);
  expect(await ids('state=failed')).toEqual(['broken']);
  expect(await ids('state=asks,quiet')).toEqual(['asking', 'calm']);
  expect(await ids('agent=other')).toEqual(['calm']);
  expect(await ids('owner=bob')).toEqual(['asking']);
  expect(await ids('q=THE%20PARCEL')).toEqual(['calm']);
  expect(await ids('prefix=bro')).toEqual(['broken']);
  expect((await read(api, 'owner=bob&state=failed')).counts).toMatchObject({ failed: 0, asks: 1 });
  for (const query of ['state=odd', 'order=odd', 'limit=0', 'after=x', 'from=-1', 'agent=a%20b'])
    expect([query, (await api.get(`/api/inbox?${query}`)).status]).toEqual([query, 400]);
});

test('follows what happens: an answer, a retirement, a pause, a deletion', async () => {
  await using api = await startApi({ company: COMPANY as never });
  await say(api, 'broken', 'please break');
  await say(api, 'paused', 'hello');
  await api.troupe.idle();
  const stateOf = async (id: string) => (await read(api, `prefix=${id}`)).lines[0]?.state;
  await untilHolds(async () => expect(await stateOf('broken')).toBe('failed'));
  await api.troupe.command({ command: 'retire', conversation: 'broken', agent: 'worker' } as never, ANA);
  await untilHolds(async () => expect(await stateOf('broken')).toBe('quiet'));
  await api.troupe.command({ command: 'pause', conversation: 'paused', agent: 'worker' } as never, ANA);
  await untilHolds(async () => expect(await stateOf('paused')).toBe('quiet'));
  await say(api, 'paused', 'are you there?');
  await untilHolds(async () => expect(await stateOf('paused')).toBe('waiting'));
  await api.troupe.delete('broken', { exported: 'none' });
  expect((await read(api)).lines.map(({ id }) => id)).toEqual(['paused']);
});

test('finds every failure among 190 conversations, counts exactly, and pages while others change', async () => {
  await using api = await startApi({ company: COMPANY as never });
  const failing = Array.from({ length: 12 }, (_, index) => `failed-${index}`);
  for (const id of failing) await say(api, id, 'please break');
  await api.troupe.idle();
  async function* source(id: string) {
    yield `{"role":"user","content":"about ${id}"}\n`;
  }
  for (let index = 0; index < 178; index += 1)
    await api.troupe.import(source(`calm-${index}`), {
      conversation: `calm-${index}`,
      agent: 'worker',
      format: 'openai',
    });
  await counted(api);
  expect((await read(api)).counts).toEqual({ failed: 12, asks: 0, running: 0, waiting: 0, quiet: 178 });
  expect((await readAll(api, 'state=failed&limit=5')).toSorted()).toEqual(failing.toSorted());
  const whole = await read(api, 'limit=5&urgent=500');
  expect(whole.lines.map(({ id }) => id).toSorted()).toEqual(failing.toSorted());
  expect((await read(api, `after=${encodeURIComponent(whole.next!)}&limit=1`)).lines).toMatchObject([
    { state: 'quiet' },
  ]);
  expect((await read(api, 'limit=5&urgent=7')).lines).toHaveLength(7);
  expect((await read(api, 'limit=5&urgent=1')).lines).toHaveLength(5);
  const first = await read(api, 'state=quiet&order=oldest&limit=100');
  expect(first.lines).toHaveLength(100);
  await say(api, 'new', 'hello');
  await api.troupe.idle();
  await counted(api);
  const rest = await readAll(
    api,
    `state=quiet&order=oldest&limit=100&after=${encodeURIComponent(first.next!)}`,
  );
  expect(rest).toHaveLength(79);
  expect(rest.at(-1)).toBe('new');
  expect(new Set([...first.lines.map(({ id }) => id), ...rest]).size).toBe(179);
});

test('the costliest come first in dollars if every agent has a price, and else in tokens', async () => {
  // A word of cy costs a thousand times as much as one of bo.
  const agents = (['bo', 'cy'] as const).map((id) => ({
    ...scripted(id, [{ reply: 'well' }]),
    price: { input: id === 'bo' ? 1 : 1_000, cacheRead: 0, cacheWrite: 0, output: 0 },
  }));
  const readOf = async (company: object[]) => {
    await using api = await startApi({ company: { agents: company } as never });
    await say(api, 'long', 'word '.repeat(200), ['bo']);
    await say(api, 'short', 'word', ['cy']);
    await say(api, 'none', 'word', []);
    await api.troupe.idle();
    await counted(api);
    const { costs, lines } = await read(api, 'order=costliest');
    const paged = await readAll(api, 'order=costliest&limit=1');
    expect(paged).toEqual(lines.map(({ id }) => id));
    return { costs, lines };
  };
  const priced = await readOf(agents);
  expect(priced.costs).toBe('dollars');
  expect(priced.lines.map(({ id }) => id)).toEqual(['short', 'long', 'none']);
  const [short, long, none] = priced.lines.map(({ tokens, dollars }) => ({ tokens, dollars }));
  expect(short?.dollars).toBeGreaterThan(long?.dollars ?? Infinity);
  expect(short?.tokens).toBeLessThan(long?.tokens ?? 0);
  expect(none).toEqual({ tokens: 0, dollars: 0 });
  const plain = await readOf(agents.map((agent) => ({ ...agent, price: undefined })));
  expect(plain).toMatchObject({
    costs: 'tokens',
    lines: [{ id: 'long', dollars: null }, { id: 'short' }, { id: 'none' }],
  });
});
