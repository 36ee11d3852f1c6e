import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createTroupe } from '../../src/index.ts';
import { ANA, messageText, ONE_AGENT, report, stop } from '../support.ts';
import { dropDatabase, newDatabaseUrl } from './bench-database.ts';
import { dropKeys, newPrefix, REDIS_URL } from './stage.ts';

/**
 * Turns per second of worker processes on Redis and the MongoDB-protocol server, through the public API. Argument:
 * number of workers. This process sends the messages; their appends are part of the time.
 */
const WORKERS = Number(process.argv[2] ?? 1);
const CONVERSATIONS = 80;
const TURNS = 240;
const SENDERS = 16;

const { url } = newDatabaseUrl();
const prefix = newPrefix();
const client = await createTroupe(ONE_AGENT, {
  mongodb: url,
  redis: REDIS_URL,
  prefix,
  work: false,
  onWarning: stop,
});
const script = fileURLToPath(new URL('worker.ts', import.meta.url));
const workers = Array.from({ length: WORKERS }, () => fork(script, [url, REDIS_URL, prefix]));
await Promise.all(workers.map((worker) => once(worker, 'message')));

/** Resolves when the queue is empty again. */
async function play(turns: number): Promise<void> {
  let next = 0;
  const sender = async () => {
    while (next < turns) {
      const index = next++;
      await client.send(`c-${index % CONVERSATIONS}`, { author: ANA, content: messageText(index) });
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, sender));
  await client.idle();
}

// The first turn of a conversation costs more, so all have had one.
await play(CONVERSATIONS);
const start = performance.now();
await play(TURNS);
const turnsPerSecond = (TURNS * 1_000) / (performance.now() - start);

for (let index = 0; index < CONVERSATIONS; index += 10) {
  const [actor] = await client.actors(`c-${index}`);
  const { head } = await client.events(`c-${index}`, { limit: 1 });
  if (actor?.lastProcessedIndex !== head) throw new Error(`c-${index} has no complete answer`);
}
await Promise.all(
  workers.map((worker) => {
    worker.send('end');
    return once(worker, 'exit');
  }),
);
await client.close();
await dropKeys(prefix);
await dropDatabase(url);
report({ turnsPerSecond });
