import { afterAll, describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { Author, Event } from '../../src/events/index.ts';
import type { LimitInput } from '../../src/library/config/agents-file.ts';
import { createTroupe, type OpenOptions, openTroupe } from '../../src/library/runtime/create-troupe.ts';
import { checkLog } from '../../packages/testing/src/check-log.ts';
import type { Troupe, Watcher } from '../../src/library/troupe.ts';
import { costlyText } from '../support/costly-texts.ts';
import { mongoUrl, redisUrl } from '../support/mode.ts';
import { MONGODB_AND_REDIS, type Place, POSTGRES_ALONE } from '../support/places.ts';

/** Several troupes on the same servers, as in several processes: each has its own engine, connections and memory. */
const ANA: Author = { kind: 'user', id: 'u1', name: 'Ana' };
const names = new Map<string, Place>();
let count = 0;

function newName(place: Place): string {
  const name = `many_${process.pid}_${Date.now().toString(36)}_${(count += 1)}`;
  names.set(name, place);
  return name;
}

async function open(
  name: string,
  options: OpenOptions & { limits?: LimitInput; sweepMs?: number; contextWindow?: number } = {},
): Promise<Troupe> {
  const { limits, sweepMs = 1_000, contextWindow, ...rest } = options;
  const rules = [{ reply: 'answer {{n}}', chunk: 2, chunkDelayMs: 2 }];
  return openTroupe(
    {
      agents: ['bo', 'cy'].map((id) => ({ id, provider: 'scripted', script: { rules }, contextWindow })),
      limits: { leaseMs: 2_000, ...limits },
    },
    {
      ...names.get(name)?.options(name),
      constants: { limits: { sweepMs } },
      onWarning: () => undefined,
      ...rest,
    },
  );
}

async function until(what: string, holds: () => Promise<boolean>, ms = 20_000): Promise<void> {
  const end = Date.now() + ms;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function answered(troupe: Troupe, conversation: string): Promise<Event[]> {
  const { events } = await troupe.events(conversation, { limit: 10_000 });
  return events.filter(({ kind }) => kind === 'turn.done');
}

const PLACES = [MONGODB_AND_REDIS, POSTGRES_ALONE];
for (const { title, missing } of PLACES)
  if (missing !== null) test.skip(`skipped: ${missing}: many processes on ${title}`, () => undefined);

afterAll(async () => {
  for (const place of PLACES)
    await place.drop(new Set([...names.keys()].filter((name) => names.get(name) === place)));
});

describe.each(PLACES.filter(({ missing }) => missing === null))('many processes on $title', (place) => {
  test('three workers share the work of an API process, and every message is answered once', async () => {
    const name = newName(place);
    await using api = await open(name, { work: false });
    const workers = await Promise.all([open(name), open(name), open(name)]);
    const sent = Array.from({ length: 60 }, (_, i) =>
      api.send(`c${i % 20}`, { author: ANA, to: [i % 2 ? 'bo' : 'cy'], content: `message ${i}` }),
    );
    await Promise.all(sent);
    await until('all is quiet', async () => {
      const { waiting, active, delayed } = await api.queues();
      return waiting + active + delayed === 0;
    });
    for (let i = 0; i < 20; i++) {
      const { events } = await api.events(`c${i}`, { limit: 1_000 });
      expect(checkLog(events, [])).toEqual([]);
    }
    for (const worker of workers) await worker.close();
  });

  test('a watcher at one process sees the work of another: events once and in order, and the text as it comes', async () => {
    const name = newName(place);
    await using api = await open(name, { work: false });
    await using _worker = await open(name);
    const notes: Parameters<Watcher>[0][] = [];
    api.watch((note) => notes.push(note));
    await api.send('c', { author: ANA, to: ['bo'], content: 'hello' });
    await until('the turn has ended', async () =>
      notes.some((note) => note.type === 'event' && note.event.kind === 'turn.done'),
    );
    const seqs = notes.flatMap((note) => (note.type === 'event' ? [note.event.seq] : []));
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    const text = notes.flatMap((note) => (note.type === 'text' ? [note.text] : [])).join('');
    expect(text).toBe('answer 1');
  });

  test('an abort at one process reaches the turn at another at once', async () => {
    const name = newName(place);
    await using api = await open(name, { work: false });
    await using _worker = await createTroupe(
      {
        agents: [
          {
            id: 'bo',
            provider: 'scripted',
            script: { rules: [{ reply: 'a long tale', chunk: 1, chunkDelayMs: 600_000 }] },
          },
          { id: 'cy', provider: 'scripted', script: { rules: [{}] } },
        ],
        // Neither the reply, nor a lease, nor a sweep ends within this test.
        limits: { leaseMs: 3_600_000 },
      },
      place.options(name),
    );
    await api.send('c', { author: ANA, to: ['bo'], content: 'tell' });
    await until('the turn runs', async () => (await api.actors('c')).some(({ turn }) => turn !== null));
    const [actor] = await api.actors('c');
    await api.command({ command: 'abort', turn: actor!.turn! }, ANA);
    await until('the turn is aborted', async () =>
      (await api.events('c')).events.some(({ kind }) => kind === 'turn.aborted'),
    );
  });

  test('a flood of random words is worked on in slices by one of two workers, and another tenant is answered meanwhile', async () => {
    const name = newName(place);
    await using api = await open(name, { work: false });
    let pauses = 0;
    const sleep: Clock['sleep'] = (ms, signal) => {
      if (ms === 0) pauses += 1;
      return systemClock.sleep(ms, signal);
    };
    const clock = { ...systemClock, sleep };
    const narrow = { contextWindow: 32_000, limits: { leaseMs: 60_000 }, clock };
    await using _one = await open(name, narrow);
    await using _two = await open(name, narrow);
    const [acme, zeta] = [api.forTenant('acme'), api.forTenant('zeta')];
    for (let n = 0; n < 60; n++)
      await acme.send('c', { author: ANA, to: [], content: costlyText('random words', 16_000, n) });
    const before = pauses;
    let isOver = false;
    const asked = acme
      .ask('c', { author: ANA, to: ['bo'], content: 'What now?' })
      .finally(() => (isOver = true));
    let count = 0;
    for (; !isOver; count += 1)
      expect((await zeta.ask(`d${count}`, { author: ANA, to: ['cy'], content: 'and me?' })).text).toContain(
        'answer',
      );
    expect((await asked).text).toContain('answer');
    expect(await answered(acme, 'c')).toHaveLength(1);
    expect(count).toBeGreaterThan(1);
    expect(pauses - before).toBeGreaterThan(100);
  });

  test('messages whose wakes were lost are answered after one sweep', async () => {
    const name = newName(place);
    await using api = await open(name, { work: false });
    for (let i = 0; i < 10; i++) await api.send(`c${i}`, { author: ANA, to: ['bo', 'cy'], content: 'hello' });
    await place.loseQueue(name);
    expect(await api.queues()).toMatchObject({ waiting: 0, active: 0, delayed: 0 });
    // The second sweep would come after an hour.
    await using worker = await open(name, { sweepMs: 3_600_000 });
    for (let i = 0; i < 10; i++) {
      await until('both have answered', async () => (await answered(worker, `c${i}`)).length === 2);
    }
  });

  test('a corrupt actor document fails its actor visibly, and the others continue', async () => {
    const name = newName(place);
    {
      await using first = await open(name);
      await first.send('c', { author: ANA, to: ['bo', 'cy'], content: 'one' });
      await until('both have answered', async () => (await answered(first, 'c')).length === 2);
    }
    // A process in which the actor rests has its record, and does not read it again.
    await using troupe = await open(name);
    await place.damageActor(name, { conversation: 'c', agent: 'bo' });
    await troupe.send('c', { author: ANA, to: ['bo', 'cy'], content: 'two' });
    await until('cy has answered and bo has failed', async () => {
      const { events } = await troupe.events('c');
      const errors = events.filter((event) => event.kind === 'error' && event.body.code === 'actor_corrupt');
      const done = events.filter(({ kind, author }) => kind === 'turn.done' && author.id === 'cy');
      return errors.length > 0 && done.length === 2;
    });
    const bo = (await troupe.actors('c')).find(({ agent }) => agent === 'bo');
    expect(bo?.status).toBe('failed');
  });

  test('a tenant cap holds over all processes', async () => {
    const name = newName(place);
    await using api = await open(name, { work: false });
    const limits = { turnsPerTenant: 2 };
    const workers = await Promise.all([open(name, { limits }), open(name, { limits })]);
    let most = 0;
    for (let i = 0; i < 12; i++) await api.send(`c${i}`, { author: ANA, to: ['bo'], content: 'hello' });
    await until('all have answered', async () => {
      const running = await Promise.all(
        Array.from(
          { length: 12 },
          async (_, i) => (await api.actors(`c${i}`)).filter(({ turn }) => turn).length,
        ),
      );
      most = Math.max(
        most,
        running.reduce((sum, each) => sum + each, 0),
      );
      const { waiting, active, delayed } = await api.queues();
      return waiting + active + delayed === 0;
    });
    for (let i = 0; i < 12; i++) expect(await answered(api, `c${i}`)).toHaveLength(1);
    expect(most).toBeLessThanOrEqual(2);
    for (const worker of workers) await worker.close();
  });
});

describe.skipIf(MONGODB_AND_REDIS.missing !== null)('wrong settings', () => {
  test.each([
    // MongoDB's own limit is an hour: ours comes first.
    [{ mongodb: 'mongodb://127.0.0.1:1/x?serverSelectionTimeoutMS=3600000' }, 'store_unavailable'],
    [{ redis: 'redis://127.0.0.1:1' }, 'queue_unavailable'],
    [{ mongodb: 'not a url' }, 'config_invalid'],
    [{ redis: 'http://127.0.0.1' }, 'config_invalid'],
  ])('%o is refused as %s', async (wrong, code) => {
    await expect(open(newName(MONGODB_AND_REDIS), wrong)).rejects.toMatchObject({ code });
  });

  test('MongoDB or Redis alone is refused, and so are both with a data directory, and two databases', async () => {
    const agents = [{ id: 'bo', provider: 'scripted' as const, script: { rules: [{}] } }];
    for (const options of [
      { mongodb: mongoUrl('x') },
      { postgres: 'postgres://127.0.0.1:1/x', data: 'dir' },
      { redis: redisUrl() },
      { mongodb: mongoUrl('x'), postgres: 'postgres://127.0.0.1:1/x', redis: redisUrl() },
      { mongodb: mongoUrl('x'), redis: redisUrl(), data: 'dir' },
    ]) {
      await expect(createTroupe({ agents }, options)).rejects.toMatchObject({ code: 'config_invalid' });
    }
  });
});
