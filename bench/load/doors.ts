import { setTimeout as pause } from 'node:timers/promises';
import type { Bench } from '../figures.ts';
import { type DoorName, type Reader, readersOf } from './door-readers.ts';
import { type LoadServer, startServer } from './server-process.ts';

const READERS = 200;
const WORDS = 400;
const WORD_EVERY_MS = 25;
/** Fixed width, so that the scripted model gives each word as one piece. */
const ANSWER = Array.from({ length: WORDS }, (_, at) => `w${String(at).padStart(4, '0')} `);
const MIB = 1_024 * 1_024;
const CONVERSATION = 'doors';
const DOORS = ['events', 'useChat', 'AG-UI', 'OpenAI', 'MCP'] as const satisfies readonly DoorName[];

/**
 * 200 readers at once of one answer by each door, and by the stream of the API for comparison. All send the same message
 * under the same idempotency key, so that one agent answers all of them.
 */
export async function measureDoors(bench: Bench): Promise<void> {
  const script = {
    rules: [{ reply: ANSWER.join(''), chunk: ANSWER[0]?.length, chunkDelayMs: WORD_EVERY_MS }],
  };
  const agents = [{ id: 'agent', provider: 'scripted', model: 'test', script }];
  const server = await startServer({ agents });
  try {
    for (const door of DOORS) await measureDoor(bench, server, door);
  } finally {
    await server.stop();
  }
}

async function measureDoor(bench: Bench, server: LoadServer, door: DoorName): Promise<void> {
  const { url, keys } = server;
  const open = await readersOf(door, { url, key: keys.load, conversation: CONVERSATION, count: READERS });
  const before = await server.memory();
  const began = performance.now();
  const ends: number[] = [];
  const reading = Promise.all(
    open.map(async (read) => {
      const reader = await read(ANSWER.length);
      ends.push(performance.now() - began);
      return reader;
    }),
  );
  await pause((WORDS * WORD_EVERY_MS) / 2);
  const during = await server.memory();
  const readers = await reading;
  const after = await server.memory();
  const last = Math.max(...ends);
  bench.heading(`${door}: ${READERS} readers of ${WORDS} words, one each ${WORD_EVERY_MS} ms`);
  bench.add('until the last reader had the end', last, 'ms');
  bench.add('from the end of the first reader to that of the last', last - Math.min(...ends), 'ms');
  bench.add('words that a reader lacked', sum(readers, lost), 'words', { atMost: 0 });
  bench.add('words that came twice or out of order', sum(readers, doubled), 'words', { atMost: 0 });
  bench.add('bytes per reader', sum(readers, ({ bytes }) => bytes) / READERS / 1_024, 'KiB');
  bench.add('CPU of the server', after.cpuMs - before.cpuMs, 'ms');
  bench.add('of it per reader', (after.cpuMs - before.cpuMs) / READERS, 'ms');
  bench.add('growth of heap and buffers while they read', (heldBy(during) - heldBy(before)) / MIB, 'MiB', {
    atMost: 200,
  });
  bench.add('the same after they have left', (heldBy(after) - heldBy(before)) / MIB, 'MiB');
  bench.add('resident memory while they read', during.rss / MIB, 'MiB');
}

function heldBy({ heapUsed, external }: { heapUsed: number; external: number }): number {
  return heapUsed + external;
}

function sum(readers: readonly Reader[], count: (reader: Reader) => number): number {
  return readers.reduce((total, reader) => total + count(reader), 0);
}

function lost({ words }: Reader): number {
  const got = new Set(words);
  return ANSWER.filter((word) => !got.has(word.trim())).length;
}

/** Words that do not come after all before them. */
function doubled({ words }: Reader): number {
  return words.filter((word, at) => at > 0 && word <= (words[at - 1] ?? '')).length;
}
