import { expect, test } from 'vitest';
import { FORMAT } from '../../src/actors/features/checkpoints/checkpoints.ts';
import { createMemoryDocuments, type MemoryData, newMemoryData } from '../../sim/memory-documents.ts';
import { createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import { ask, fill, mind, small } from '../support/compaction-stage.ts';
import { logOf, openStage, type Stage, type StageOptions } from '../support/engine-stage.ts';

/** A driver on this data that counts the rows of events it returns. */
function driverOn(data: MemoryData): { driver: StoreDriver; rows: () => number } {
  const driver = createDocumentDriver(createMemoryDocuments({ data }), {
    random: Math.random,
    sleep: () => Promise.resolve(),
  });
  let rows = 0;
  return {
    rows: () => rows,
    driver: {
      ...driver,
      async readEvents(query) {
        const read = await driver.readEvents(query);
        rows += read.length;
        return read;
      },
    },
  };
}

/** A process over the data: two agents, of which one has a window that the conversation overflows. */
async function open(data: MemoryData, checkpoints: StageOptions['checkpoints'] = { least: 8 }) {
  const model = mind();
  const { driver, rows } = driverOn(data);
  const agents = [small('bo', model), { id: 'cy', model: mind() }];
  // Retrieval reads covered events; it is tested elsewhere.
  const context = { retrieval: false };
  return { stage: await openStage({ agents, driver, checkpoints, context, fallback: 'bo' }), model, rows };
}

/** The engine ends, and what it had queued is written. */
async function close(stage: Stage): Promise<void> {
  await stage.deps.features.checkpoints?.folds.flush();
  await stage.engine.stop();
}

/** A conversation of several compactions, with the checkpoints of one process. */
async function worked(): Promise<MemoryData> {
  const data = newMemoryData();
  const { stage } = await open(data);
  for (let round = 0; round < 8; round += 1) {
    await fill(stage, 6, round * 6);
    await ask(stage, `Question ${round}?`, [round % 3 === 2 ? 'cy' : 'bo']);
    await stage.deps.features.checkpoints?.folds.flush();
  }
  expect((await stage.events('c')).filter(({ kind }) => kind === 'compaction').length).toBeGreaterThan(1);
  await close(stage);
  return data;
}

test('the first message in a process reads a long log once, although three folds are made of it', async () => {
  const data = newMemoryData();
  const checkpoints = { least: Infinity };
  const agents = [{ id: 'cy', model: mind() }];
  const first = await openStage({ agents, driver: driverOn(data).driver, checkpoints });
  for (let n = 0; n < 700; n += 1) await first.say('c', `Note ${n}.`, []);
  await close(first);
  const { driver, rows } = driverOn(data);
  const model = mind();
  const stage = await openStage({ agents: [{ id: 'cy', model }], driver, checkpoints });
  const author = { kind: 'user', id: 'ana', name: 'Ana' } as const;
  const answer = stage.troupe.ask('c', { author, to: ['cy'], content: 'And now?' });
  await stage.quiet();
  await answer;
  expect(model.requests).toHaveLength(1);
  expect(model.requests[0]?.messages.some(({ content }) => content.includes('Note 0.'))).toBe(true);
  expect(rows()).toBeGreaterThanOrEqual(700);
  // Each reads the last page, which may have grown.
  expect(rows()).toBeLessThan(700 + 2 * 250);
  await close(stage);
});

function keysOf(data: MemoryData, subject = ''): string[] {
  return [...data.entries.keys()].filter((key) => key.includes(`/checkpoint/${subject}`)).sort();
}

/** The request of the first turn of a new process on a copy of the data, and the rows it read. */
async function firstRequest(given: MemoryData, checkpoints?: StageOptions['checkpoints']) {
  const data = structuredClone(given);
  const { stage, model, rows } = await open(data, checkpoints);
  await ask(stage, 'And now?');
  const [request] = model.asked();
  const found = { request: request?.messages, rows: rows(), data, warnings: stage.warnings };
  await close(stage);
  return found;
}

const data = await worked();
const without = await firstRequest(data, { least: Infinity });

test('a new process reads the events behind the checkpoint only, and sends the same request', async () => {
  const first = await firstRequest(data);
  expect(first.request).toEqual(without.request);
  expect(first.request?.length).toBeGreaterThan(3);
  expect(first.rows).toBeLessThan(without.rows / 3);
});

test('after an import of a conversation a new process reads the events behind the checkpoint only, and sends the same request', async () => {
  const source = await open(structuredClone(data));
  let lines = '';
  for await (const line of source.stage.troupe.export('c')) lines += line;
  await close(source.stage);
  const imported = newMemoryData();
  const { stage } = await open(imported);
  async function* chunks() {
    yield lines;
  }
  await stage.troupe.import(chunks(), { conversation: 'c', format: 'troupe' });
  await close(stage);
  expect(keysOf(imported).map((key) => key.split('/')[4])).toEqual(
    expect.arrayContaining(['actor:bo', 'actor:cy', 'participants', 'tasks']),
  );
  const first = await firstRequest(imported);
  const whole = await firstRequest(imported, { least: Infinity });
  expect(first.request).toEqual(whole.request);
  expect(first.request?.length).toBeGreaterThan(3);
  expect(first.rows).toBeLessThan(whole.rows / 3);
});

type Spoil = (text: string, key: string, data: MemoryData) => string | null;
const SPOILS: Record<string, Spoil> = {
  removed: () => null,
  empty: () => '',
  truncated: (text) => text.slice(0, text.length / 2),
  'changed in one bit': (text) => {
    const at = text.lastIndexOf('harbour');
    return `${text.slice(0, at)}i${text.slice(at + 1)}`;
  },
  'of another format': (text) => text.replace(/checkpoint \d+/, 'checkpoint 0'),
  'that of another agent': (text, key, { entries }) =>
    entries.get(key.replace('actor:bo', 'actor:cy'))?.data ?? text.replace('actor:bo', 'actor:cy'),
};

test.each(Object.keys(SPOILS))('a checkpoint that is %s gives the same request', async (name) => {
  const newest = structuredClone(data);
  spoil(newest, SPOILS[name]!, keysOf(data, 'actor:bo').slice(-1));
  spoil(newest, SPOILS[name]!, keysOf(data, 'participants').slice(-1));
  const older = await firstRequest(newest);
  expect(older.request).toEqual(without.request);
  expect(older.rows).toBeLessThan(without.rows);

  const all = structuredClone(data);
  spoil(all, SPOILS[name]!, keysOf(data));
  const none = await firstRequest(all);
  expect(none.request).toEqual(without.request);
  expect(none.warnings).toEqual([]);
});

function spoil({ entries, ...rest }: MemoryData, how: Spoil, keys: readonly string[]): void {
  for (const key of keys) {
    const entry = entries.get(key)!;
    const text = how(entry.data, key, { entries, ...rest });
    if (text === null) entries.delete(key);
    else entries.set(key, { ...entry, data: text });
  }
}

test('they name the format of the folds, not the release: a new release with the same folds reads them', () => {
  const texts = keysOf(data, 'actor:bo').map((key) => data.entries.get(key)?.data ?? '');
  expect(texts.map((text) => text.split('\n')[0])).toEqual(Array(2).fill(`troupe checkpoint ${FORMAT}`));
});

test('another version does not read the checkpoints, and replaces them by its own', async () => {
  const later = await firstRequest(data, { least: 8, version: ' next' });
  expect(later.request).toEqual(without.request);
  const texts = keysOf(later.data, 'actor:bo').map((key) => later.data.entries.get(key)?.data ?? '');
  expect(texts.at(-1)).toMatch(/^troupe checkpoint \d+ next\n/);
  expect(texts).toHaveLength(2);
});

test('there are at most two for each agent, without the secret of its fences, and they go with the conversation', async () => {
  expect(keysOf(data, 'actor:bo')).toHaveLength(2);
  expect(keysOf(data, 'actor:cy').length).toBeLessThanOrEqual(2);
  expect(keysOf(data, 'participants')).toHaveLength(2);
  const copy = structuredClone(data);
  const { stage } = await open(copy);
  const secret = stage.deps.secretOf({ ...logOf('c'), agent: 'bo' as never });
  for (const key of keysOf(copy)) expect(copy.entries.get(key)?.data).not.toContain(secret);
  await stage.troupe.delete('c', { exported: 'none' });
  await close(stage);
  expect(keysOf(copy)).toEqual([]);
});

test('a conversation that is deleted while a checkpoint waits leaves none', async () => {
  const copy = structuredClone(data);
  const { stage } = await open(copy);
  await fill(stage, 10, 100);
  await ask(stage, 'More?');
  await stage.troupe.delete('c', { exported: 'none' });
  await close(stage);
  expect(keysOf(copy)).toEqual([]);
});

test('a checkpoint of a log that was deleted and begun anew is not used', async () => {
  const copy = structuredClone(data);
  const kept = keysOf(copy).map((key) => [key, copy.entries.get(key)!] as const);
  const { stage } = await open(copy);
  await stage.troupe.delete('c', { exported: 'none' });
  for (let round = 0; round < 8; round += 1) {
    await fill(stage, 6, 200 + round * 6);
    await ask(stage, `Another question ${round}?`);
  }
  await close(stage);
  for (const [key, entry] of kept) copy.entries.set(key, entry);
  const before = await firstRequest(copy, { least: Infinity });
  expect((await firstRequest(copy)).request).toEqual(before.request);
});

test('a resumed turn is not given a checkpoint beyond its pin', async () => {
  const { stage } = await open(structuredClone(data));
  const checkpoints = stage.deps.features.checkpoints?.folds;
  const [older = '', newer = ''] = keysOf(data, 'actor:bo').map((key) => key.split('/').at(-1));
  const load = (upTo: number) => checkpoints?.load(logOf('c'), 'actor:bo', { upTo });
  expect((await load(Number(newer)))?.seq).toBe(Number(newer));
  expect((await load(Number(newer) - 1))?.seq).toBe(Number(older));
  expect(await load(Number(older) - 1)).toBeNull();
  await close(stage);
});

test('the state of a conversation is read from its checkpoint, and is the same', async () => {
  const copy = structuredClone(data);
  const { stage } = await open(copy);
  const before = await stage.troupe.state('c');
  const tasks = await stage.troupe.tasks('c');
  await close(stage);
  expect(keysOf(copy, 'tasks')).toHaveLength(1);
  const { stage: next, rows } = await open(copy);
  expect(await next.troupe.state('c')).toEqual(before);
  expect(await next.troupe.tasks('c')).toEqual(tasks);
  expect(rows()).toBeLessThan(10);
  await close(next);
});
