import { createTroupe } from '../../src/index.ts';
import { createApp } from '../../src/http/api/index.ts';

/** Prints the bytes per request that small garbage collections leave, round by round. Wants `node --expose-gc --single-threaded`. */
const REQUESTS = 2_000;
const { gc } = globalThis as unknown as { gc: (options: { type: 'minor' }) => void };

await using troupe = await createTroupe(
  { agents: [{ id: 'echo', provider: 'scripted', model: 'test', script: { rules: [{ reply: 'ok' }] } }] },
  { onWarning: () => {} },
);
const app = createApp(troupe);

async function usedAfterRound(): Promise<number> {
  for (let n = 0; n < REQUESTS; n++) await (await app.request('/healthz')).arrayBuffer();
  gc({ type: 'minor' });
  gc({ type: 'minor' });
  return process.memoryUsage().heapUsed;
}

const rounds: number[] = [];
for (let used = await usedAfterRound(); rounds.length < 8;) {
  const after = await usedAfterRound();
  rounds.push(Math.round((after - used) / REQUESTS));
  used = after;
}
process.stdout.write(JSON.stringify(rounds));
