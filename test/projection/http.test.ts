import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createProjectionCache } from '../../src/http/projection-caches.ts';
import { RowsAnswer, SnapshotAnswer } from '../../src/http/answers.ts';
import { foldEvents, newProjection } from '../../src/library/projection/projection.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { untilHolds } from '../support/until-holds.ts';
import { ANA, type Harness, scripted, startApi } from '../http/harness.ts';

const WORKER = scripted('worker', [
  { when: { contains: 'break' }, fail: { code: 'provider_auth', message: 'HTTP 401' } } as never,
  {
    when: { contains: 'inquire', step: 1 },
    calls: [{ name: 'ask', args: { question: 'Which colour?', choices: ['red', 'blue'] } }],
  } as never,
  { reply: 'answer {{n}}' },
]);
const COMPANY = {
  agents: [{ ...WORKER, tools: ['ask'] }, scripted('other', [{ reply: 'Needle, found' }])],
};

async function stage(): Promise<Harness> {
  // A search stops after two seconds. Here they never pass, even on a slow machine.
  return startApi({ company: COMPANY as never, clock: { ...systemClock, now: () => 0 } });
}

async function say(api: Harness, conversation: string, content: string, to: string[] = ['worker']) {
  await api.troupe.send(conversation, { author: ANA, to, content });
  await api.troupe.idle();
}

/** Imports a log, which wakes no agent. */
async function fill(api: Harness, conversation: string, lines: number): Promise<void> {
  const text = Array.from({ length: lines }, (_, index) =>
    JSON.stringify({ role: index % 2 === 0 ? 'user' : 'assistant', content: `line ${index + 1}` }),
  ).join('\n');
  async function* source() {
    yield text;
  }
  await api.troupe.import(source(), { conversation, agent: 'worker', format: 'openai' });
}

async function rows(api: Harness, conversation: string, query = '') {
  const { status, body } = await api.get(`/api/conversations/${conversation}/rows?${query}`);
  expect([status, body]).toMatchObject([200, {}]);
  return RowsAnswer.parse(body);
}

describe('a snapshot', () => {
  test('is the fold of the log up to the requested seq', async () => {
    await using api = await stage();
    await say(api, 'c', 'Hello');
    await say(api, 'c', 'please inquire', ['worker', 'other']);
    const { events, head } = await api.troupe.events('c');
    const now = SnapshotAnswer.parse((await api.get('/api/conversations/c/snapshot')).body);
    expect(now).toMatchObject({ seq: head, head, actors: [{ agent: 'other' }, { agent: 'worker' }] });
    expect(now.projection).toEqual(foldEvents(newProjection('c'), events));
    expect(now.projection.agents['worker']).toMatchObject({ condition: 'waiting', state: 'waiting.answer' });
    expect(now.projection.tasks).toMatchObject([
      { kind: 'question', text: 'Which colour?', choices: ['red', 'blue'] },
    ]);
    for (let at = 0; at <= head + 2; at++) {
      const { body } = await api.get(`/api/conversations/c/snapshot?at=${at}`);
      const seq = Math.min(at, head);
      expect(SnapshotAnswer.parse(body)).toMatchObject({ seq, head, actors: [] });
      expect(body['projection']).toEqual(foldEvents(newProjection('c'), events.slice(0, seq)));
    }
  });

  test('of an unknown conversation or with an invalid seq is refused', async () => {
    await using api = await stage();
    for (const path of ['snapshot', 'snapshot?at=3', 'rows', 'export?format=html']) {
      const { status, body } = await api.get(`/api/conversations/nowhere/${path}`);
      expect([status, body]).toMatchObject([404, { error: { code: 'conversation_unknown' } }]);
    }
    await say(api, 'c', 'Hello');
    for (const path of [
      'snapshot?at=-1',
      'snapshot?at=x',
      'rows?limit=501',
      'rows?level=loud',
      'rows?q=%20',
    ]) {
      expect((await api.get(`/api/conversations/c/${path}`)).status).toBe(400);
    }
    expect((await api.get('/api/search')).status).toBe(400);
  });

  test('shows a failed turn, and starts over after the conversation was deleted', async () => {
    await using api = await stage();
    await say(api, 'c', 'Hello');
    await api.get('/api/conversations/c/snapshot');
    await api.troupe.delete('c', { exported: 'none' });
    expect((await api.get('/api/conversations/c/snapshot')).status).toBe(404);
    await say(api, 'c', 'other', ['other']);
    await say(api, 'c', 'break');
    const { projection } = SnapshotAnswer.parse((await api.get('/api/conversations/c/snapshot')).body);
    expect(Object.keys(projection.agents)).toEqual(['other', 'worker']);
    expect(projection.agents['worker']).toMatchObject({
      condition: 'failed',
      problem: { code: 'provider_auth' },
    });
  });

  test('shows an agent as available again after a message without words to it', async () => {
    await using api = await stage();
    const condition = async () => {
      const { body } = await api.get('/api/conversations/c/snapshot');
      return SnapshotAnswer.parse(body).projection.agents['worker']?.condition;
    };
    await say(api, 'c', 'Hello');
    for (const [command, expected] of [
      ['leave', 'left'],
      ['block', 'left'],
      ['retire', 'retired'],
    ]) {
      await api.post('/api/commands', { command, conversation: 'c', agent: 'worker' });
      expect(await condition()).toBe(expected);
      await say(api, 'c', '');
      expect(await condition()).toBe('idle');
    }
  });
});

describe('the projections that a server keeps', () => {
  test('are caught up once for simultaneous requests, and a past one reads at most 2,000 events', async () => {
    await using api = await stage();
    await fill(api, 'long', 9_500);
    let read = 0;
    const counted: Pick<Troupe, 'events'> = {
      events: async (conversation, range) => {
        const answer = await api.troupe.events(conversation, range);
        read += answer.events.length;
        return answer;
      },
    };
    const cache = createProjectionCache(counted);
    const { head } = await api.troupe.events('long', { limit: 1 });
    const all = await Promise.all([cache.latest('long'), cache.latest('long'), cache.latest('long')]);
    expect(all.map(({ seq }) => seq)).toEqual([head, head, head]);
    expect(read).toBeLessThan(head + 50);
    const { events } = await api.troupe.events('long', { limit: 10_000 });
    for (const seq of [1, 1_999, 2_000, 2_001, 7_777, head]) {
      read = 0;
      expect((await cache.at('long', seq)).projection).toEqual(
        foldEvents(newProjection('long'), events.slice(0, seq)),
      );
      expect(read).toBeLessThanOrEqual(2_001);
    }
  });

  test('include what the caller has written, even while another request reads', async () => {
    await using api = await stage();
    const cache = createProjectionCache(api.troupe);
    await api.troupe.send('c', { author: ANA, to: [], content: 'first' });
    for (let n = 0; n < 20; n++) {
      const before = cache.latest('c');
      const { event } = await api.troupe.send('c', {
        author: ANA,
        to: [],
        content: `more ${n}`,
        replyTo: 'x' as never,
      });
      expect((await cache.latest('c')).seq).toBeGreaterThanOrEqual(event.seq);
      await before;
    }
  });
});

describe('rows', () => {
  test('are the newest that match before a seq, or the oldest after one', async () => {
    await using api = await stage();
    await fill(api, 'c', 30);
    const { head } = await rows(api, 'c');
    const seqs = async (query: string) => {
      const answer = await rows(api, 'c', query);
      return { seqs: answer.rows.map(({ seq }) => seq), more: answer.more, next: answer.next };
    };
    const range = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, index) => from + index);
    expect(await seqs('')).toEqual({ seqs: range(1, head), more: false, next: null });
    expect(await seqs('limit=5')).toEqual({ seqs: range(head - 4, head), more: true, next: head - 4 });
    expect(await seqs('limit=5&before=11')).toEqual({ seqs: range(6, 10), more: true, next: 6 });
    expect(await seqs('before=6')).toEqual({ seqs: range(1, 5), more: false, next: null });
    expect(await seqs('limit=5&after=10')).toEqual({ seqs: range(11, 15), more: true, next: 15 });
    expect(await seqs(`after=${head - 2}`)).toEqual({ seqs: [head - 1, head], more: false, next: null });
    expect(await seqs(`after=${head + 9}`)).toEqual({ seqs: [], more: false, next: null });
    expect(await seqs(`before=${head + 9}&limit=1`)).toMatchObject({ seqs: [head] });
    expect(await seqs('before=0')).toEqual({ seqs: [], more: false, next: null });
  });

  test('are filtered by agent, kind, level, turn and words', async () => {
    await using api = await stage();
    await say(api, 'c', 'Hello');
    await say(api, 'c', 'please inquire');
    await say(api, 'c', 'and you?', ['other']);
    await say(api, 'c', 'break');
    const found = async (query: string) => (await rows(api, 'c', query)).rows;
    const kinds = async (query: string) => new Set((await found(query)).map(({ kind }) => kind));
    expect(await kinds('kind=message,turn.done')).toEqual(new Set(['message', 'turn.done']));
    expect([...(await kinds('not=message,error'))]).not.toContain('message');
    const others = await found('agent=other');
    expect(others.length).toBeGreaterThan(2);
    for (const { agent, to } of others) expect([agent, ...to]).toContain('other');
    const turn = await found('turn=c:worker:2');
    expect(new Set(turn.map(({ turn: id }) => id))).toEqual(new Set(['c:worker:2']));
    expect(turn.map(({ kind }) => kind)).toContain('question');
    expect((await kinds('level=problem')).has('turn.failed')).toBe(true);
    expect(await found('q=needle')).toMatchObject([{ author: 'other', kind: 'message' }]);
    expect((await found('q=colour')).map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['step', 'question']),
    );
    expect((await found('q=http%20401')).every(({ level }) => level === 'problem')).toBe(true);
    expect(await found('q=needle&agent=worker')).toEqual([]);
  });

  test('may be of an agent from elsewhere, whose id is of another form', async () => {
    await using api = await stage();
    const author = { kind: 'agent', id: 'https://else.where/ada', name: 'Ada' } as const;
    await api.troupe.send('c', { author, to: [], content: 'Hello' });
    const { body } = await api.get('/api/conversations/c/rows');
    expect(RowsAnswer.parse(body).rows).toMatchObject([{ agent: author.id, author: 'Ada' }]);
    const { projection } = SnapshotAnswer.parse((await api.get('/api/conversations/c/snapshot')).body);
    expect(projection.talk).toMatchObject([{ agent: author.id, name: 'Ada' }]);
  });

  test('that are rare are searched for in 20,000 events at a time', async () => {
    const total = 45_000;
    const line = (seq: number) => ({
      seq,
      at: seq,
      id: `e${seq}`,
      kind: 'message',
      author: ANA,
      to: [],
      body: { content: seq === 7 ? 'rare' : 'x' },
    });
    const wrap = (troupe: Troupe): Troupe => ({
      ...troupe,
      events: async (_, { after = 0, limit = 500 } = {}) => ({
        events: Array.from({ length: Math.max(0, Math.min(limit, total - after)) }, (_each, index) =>
          line(after + index + 1),
        ) as never,
        head: total,
      }),
    });
    await using long = await startApi({ wrap });
    const first = await rows(long, 'c', 'q=rare');
    expect(first).toEqual({ rows: [], head: total, more: true, next: 25_001 });
    const second = await rows(long, 'c', `q=rare&before=${first.next}`);
    expect(second).toMatchObject({ rows: [], next: 5_001 });
    expect(await rows(long, 'c', `q=rare&before=${second.next}`)).toMatchObject({
      rows: [{ seq: 7 }],
      more: false,
    });
    expect(await rows(long, 'c', 'q=never&after=0')).toMatchObject({ rows: [], more: true, next: 20_000 });
  });
});

describe('a stored projection', () => {
  /** A cache of a new process, and the events it has read. */
  function open(troupe: Troupe) {
    let read = 0;
    const cache = createProjectionCache({
      ...troupe,
      async events(conversation, range) {
        const answer = await troupe.events(conversation, range);
        read += answer.events.length;
        return answer;
      },
    });
    return { cache, read: () => read };
  }

  test('lets the next process read the end of the log only, with the same state', async () => {
    await using api = await stage();
    await fill(api, 'long', 4_000);
    await open(api.troupe).cache.latest('long');
    await untilHolds(async () => expect(await api.troupe.checkpoint('long', 'inspector')).not.toBeNull());
    await say(api, 'long', 'and now?');
    const { events } = await api.troupe.events('long', { limit: 10_000 });
    const { cache, read } = open(api.troupe);
    expect(await cache.latest('long')).toEqual(foldEvents(newProjection('long'), events));
    expect(read()).toBeLessThan(20);
    for (const seq of [1, 2_500, 4_000])
      expect((await cache.at('long', seq)).projection).toEqual(
        foldEvents(newProjection('long'), events.slice(0, seq)),
      );
  });

  test('of a conversation that was deleted and begun anew is not used', async () => {
    await using api = await stage();
    await fill(api, 'long', 2_000);
    await open(api.troupe).cache.latest('long');
    await untilHolds(async () => expect(await api.troupe.checkpoint('long', 'inspector')).not.toBeNull());
    await api.troupe.delete('long', { exported: 'none' });
    await fill(api, 'long', 10);
    expect(await api.troupe.checkpoint('long', 'inspector')).toBeNull();
    expect((await open(api.troupe).cache.latest('long')).totals.events).toBeLessThan(20);
  });
});
