import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { createTroupe } from '../../src/index.ts';
import { ANA, report } from '../support.ts';
import { dropDatabase, newDatabaseUrl } from './bench-database.ts';
import { FIFTY, TURNS_PER_MESSAGE } from './fan-out-company.ts';
import { dropKeys, newPrefix, REDIS_URL } from './stage.ts';

/**
 * A company of fifty fans out three levels deep on two worker processes, several times at once. Checks that every
 * task is done, that every result comes back, and that no document is written by all.
 */
const WORKERS = 2;
const MESSAGES = 6;
const POLL_MS = 20;

const { url } = newDatabaseUrl();
const prefix = newPrefix();
const client = await createTroupe(FIFTY, {
  mongodb: url,
  redis: REDIS_URL,
  prefix,
  work: false,
  onWarning: console.error,
});
const script = fileURLToPath(new URL('fan-out-worker.ts', import.meta.url));
const workers = Array.from({ length: WORKERS }, () => fork(script, [url, REDIS_URL, prefix]));
await Promise.all(workers.map((worker) => once(worker, 'message')));

async function answered(conversation: string): Promise<void> {
  for (;;) {
    const { events } = await client.events(conversation, { limit: 1_000 });
    if (events.some(({ kind, author }) => kind === 'message' && author.kind === 'agent')) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

const start = performance.now();
await Promise.all(
  Array.from({ length: MESSAGES }, async (_, index) => {
    await client.send(`c${index}`, { author: ANA, content: 'please do it all' });
    await answered(`c${index}`);
  }),
);
const seconds = (performance.now() - start) / 1_000;
await client.idle();

const ended = await Promise.all(
  workers.map(async (worker) => {
    worker.send('end');
    const [counted] = (await once(worker, 'message')) as [{ turns: number; retries: number }];
    await once(worker, 'exit');
    return counted;
  }),
);
const turns = ended.reduce((sum, counted) => sum + counted.turns, 0);
const retries = ended.reduce((sum, counted) => sum + counted.retries, 0);
await client.close();
await dropKeys(prefix);
await dropDatabase(url);
report({
  turnsPerSecond: turns / seconds,
  retriesPerCommit: retries / turns,
  unfinished: MESSAGES * TURNS_PER_MESSAGE - turns,
});
