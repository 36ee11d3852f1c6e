import { describe, expect, test } from 'vitest';
import { createMemorySearch } from '../../src/actors/features/memory/memory-search.ts';
import { storedSegments } from '../../src/actors/features/memory/stored-index.ts';
import { createCheckpoints } from '../../src/actors/features/checkpoints/checkpoints.ts';
import type { AgentId, Event, EventId } from '../../src/events/index.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { createFakeEmbedder } from '../../packages/testing/src/fake-vendors.ts';
import { ADDRESS, dialogue, said } from './said.ts';

const TALK = dialogue(
  'The harbour opens at six.',
  'Bread and butter for breakfast.',
  'Our accountant is Ines.',
  'The red folder has the contracts.',
  ...Array.from({ length: 60 }, (_, n) => `On day ${n} the sea was calm.`),
);

/** A log and what is derived from it. Each `open` is a new process. */
function stage(written: readonly Event[] = TALK, mostWords = Infinity) {
  const texts = new Map<string, string>();
  const at = { log: written };
  const read: number[] = [];
  const store = {
    putDerived: async (_: unknown, key: string, text: string) => void texts.set(key, text),
    readDerived: async (_: unknown, keys: readonly string[]) => keys.map((key) => texts.get(key) ?? null),
    derivedKeys: async (_: unknown, prefix: string) =>
      [...texts.keys()].filter((key) => key.startsWith(prefix)).sort(),
    removeDerived: async (_: unknown, keys: readonly string[]) => keys.forEach((key) => texts.delete(key)),
    markOf: async (_: unknown, seq: number) => at.log.find((event) => event.seq === seq)?.id ?? null,
  };
  const clock = { now: () => 0, monotonic: () => 0, sleep: () => Promise.resolve() };
  const onWarning = (error: unknown) => {
    throw error;
  };
  const folds = createCheckpoints({ store, clock, version: '', least: 10, onWarning });

  async function* pages(after: number, upTo: number) {
    const some = at.log.filter(({ seq }) => seq > after && seq <= upTo);
    read.push(some.length);
    if (some.length > 0) yield some;
  }

  function open(embedder: ReturnType<typeof createFakeEmbedder> | null = null) {
    const memory = createMemorySearch({ embedder, clock: createFakeClock(), onWarning });
    return {
      async search(query: string, { upTo = TALK.length, agent = ADDRESS.agent as string } = {}) {
        const address = { ...ADDRESS, agent: agent as AgentId };
        const hits = await memory.search({
          address,
          events: (after) => pages(after, upTo),
          upTo,
          segments: { ...storedSegments(folds, address), mostWords },
          query,
          limit: 3,
          signal: new AbortController().signal,
        });
        return hits.map(({ seq }) => seq);
      },
      async close() {
        await memory[Symbol.asyncDispose]();
        await folds.flush();
      },
    };
  }

  return { at, texts, read, folds, open };
}

async function ask(
  { open }: ReturnType<typeof stage>,
  query: string,
  options?: { upTo?: number; agent?: string },
): Promise<number[]> {
  const process = open();
  const found = await process.search(query, options);
  await process.close();
  return found;
}

describe('the stored index of memories', () => {
  test('the first search of a new process finds what the one before has indexed, and reads nothing again', async () => {
    const log = stage();
    expect((await ask(log, 'where are the contracts?'))[0]).toBe(4);
    expect(log.read).toEqual([TALK.length]);
    expect((await ask(log, 'where are the contracts?'))[0]).toBe(4);
    expect((await ask(log, 'who is the accountant?', { agent: 'coder' }))[0]).toBe(3);
    expect(log.read).toEqual([TALK.length]);
  });

  test('only new events are read, and stored with the others', async () => {
    const log = stage();
    await ask(log, 'contracts?');
    const more = Array.from({ length: 20 }, (_, n) => said(TALK.length + 1 + n, `The lamp ${n} was lit.`));
    log.at.log = [...TALK, ...more];
    const upTo = log.at.log.length;
    expect((await ask(log, 'lamp 7?', { upTo }))[0]).toBe(TALK.length + 8);
    expect((await ask(log, 'lamp 7?', { upTo }))[0]).toBe(TALK.length + 8);
    expect(log.read).toEqual([TALK.length, 20]);
  });

  test('an agent whose summary covers less finds nothing later, and ranks as if there was nothing later', async () => {
    const log = stage();
    await ask(log, 'contracts?');
    expect(await ask(log, 'where are the contracts?', { upTo: 3, agent: 'coder' })).not.toContain(4);
    const alone = stage();
    const few = { upTo: 12, agent: 'coder' };
    expect(await ask(log, 'was the sea calm on day 3?', few)).toEqual(
      await ask(alone, 'was the sea calm on day 3?', few),
    );
  });

  test('words that were erased are in no index, neither in the present process nor in what is stored', async () => {
    const log = stage();
    const process = log.open();
    expect((await process.search('where are the contracts?'))[0]).toBe(4);
    const erased = said(4, '');
    const hole = { ...said(TALK.length + 1, ''), kind: 'command', body: ERASE } as Event;
    log.at.log = [...TALK.map((event) => (event.seq === 4 ? erased : event)), hole];
    await log.folds.erase(ADDRESS, hole.seq);
    const upTo = hole.seq;
    expect(await process.search('contracts', { upTo })).toEqual([]);
    await process.close();
    expect(await ask(log, 'contracts', { upTo })).toEqual([]);
    expect(log.read).toEqual([TALK.length, 1, TALK.length + 1]);
  });

  test('what is stored of a conversation that was deleted and begun anew is not used', async () => {
    const log = stage();
    const process = log.open();
    await process.search('contracts?');
    const anew = Array.from({ length: 80 }, (_, n) => ({
      ...said(n + 1, n === 3 ? 'The blue folder has the recipes.' : `Rain on day ${n}.`),
      id: `other${n}` as EventId,
    }));
    log.at.log = anew;
    expect(await process.search('contracts', { upTo: 80 })).toEqual([]);
    expect((await process.search('recipes?', { upTo: 80 }))[0]).toBe(4);
    // A shorter one is another one, too.
    log.at.log = anew.slice(0, 9).map((event) => {
      const id = `third${event.seq}` as EventId;
      return event.seq === 4 ? { ...said(4, 'The green folder has the tickets.'), id } : { ...event, id };
    });
    expect(await process.search('recipes?', { upTo: 9 })).toEqual([]);
    expect((await process.search('tickets?', { upTo: 9 }))[0]).toBe(4);
    log.at.log = anew;
    await process.close();
    expect(await ask(log, 'contracts', { upTo: 80 })).toEqual([]);
  });

  test('damaged segments are built again', async () => {
    const log = stage();
    await ask(log, 'contracts?');
    for (const [key, text] of log.texts) log.texts.set(key, text.slice(0, -9));
    expect((await ask(log, 'where are the contracts?'))[0]).toBe(4);
    expect(log.read).toEqual([TALK.length, TALK.length]);
  });

  test('with an embedder the events are read for their vectors, and the words are not lost', async () => {
    const log = stage();
    await ask(log, 'contracts?');
    const process = log.open(createFakeEmbedder());
    expect((await process.search('where are the contracts?'))[0]).toBe(4);
    await process.close();
    expect(log.read).toEqual([TALK.length, TALK.length]);
  });

  test('a segment that is too large for the database is not stored, and the log is read again', async () => {
    const log = stage(TALK, 100);
    for (const _ of ['first', 'second']) expect((await ask(log, 'where are the contracts?'))[0]).toBe(4);
    expect(log.texts.size).toBe(0);
    expect(log.read).toEqual([TALK.length, TALK.length]);
  });

  test('a short log is not stored', async () => {
    const log = stage(TALK.slice(0, 9));
    expect((await ask(log, 'contracts?', { upTo: 9 }))[0]).toBe(4);
    expect(log.texts.size).toBe(0);
  });
});

const ERASE = {
  command: 'erase',
  erasure: { person: 'ana', events: [{ id: 'e4', hash: 'h' }] },
};
