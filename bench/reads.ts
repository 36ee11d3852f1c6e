import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTroupe } from '../src/index.ts';
import { type AppOptions, createApp } from '../src/http/api/index.ts';
import { routeName } from '../src/http/route.ts';
import { ROUTES } from '../src/http/routes/index.ts';
import { openSqliteDriver } from '../src/store/sqlite/sqlite-driver.ts';
import type { Troupe } from '../src/library/troupe.ts';

/**
 * Cost of each read route with much data: CPU, response size, and the longest block of the event loop.
 *
 * node bench/reads.ts [conversations] [events] [--each 1]
 */
const [CONVERSATIONS = 100_000, EVENTS = 200_000] = process.argv.slice(2).map(Number);
const TENANT = 'acme';
const BATCH = 2_000;
const AUTHOR = { kind: 'user', id: 'ana', name: 'Ana' } as const;
/** Reading time of a stream. */
const STREAM_MS = 3_000;

async function fill(path: string, from: number): Promise<void> {
  const driver = await openSqliteDriver({ path });
  const row = { tenant: TENANT, at: 0, kind: 'message', to: [], hash: '', tokens: 25, turn: null };
  const data = (text: string) => JSON.stringify({ author: AUTHOR, body: { content: text } });
  for (let done = 0; done < CONVERSATIONS; done += BATCH) {
    await driver.append(
      Array.from({ length: Math.min(BATCH, CONVERSATIONS - done) }, (_, index) => ({
        ...row,
        at: from + done + index,
        conversation: `room-${done + index}`,
        id: 'e1',
        data: data('hello'),
      })),
    );
  }
  for (let done = 0; done < EVENTS; done += BATCH) {
    await driver.append(
      Array.from({ length: Math.min(BATCH, EVENTS - done) }, (_, index) => ({
        ...row,
        at: from + done + index,
        conversation: 'long',
        id: `m${done + index}`,
        data: data(
          `message ${done + index} says what is to be done about a thing, and to whom it is to be told`,
        ),
      })),
    );
  }
  await driver.close();
}

/** Time between two turns of the event loop, ms. */
function watchHolds(): { longest: number; end: () => void } {
  let before = performance.now();
  const holds = { longest: 0, end: () => clearInterval(timer) };
  const timer = setInterval(() => {
    const now = performance.now();
    holds.longest = Math.max(holds.longest, now - before);
    before = now;
  }, 1);
  return holds;
}

const dir = await mkdtemp(join(tmpdir(), 'troupe-reads-'));
const company = {
  agents: [
    {
      id: 'a',
      provider: 'scripted' as const,
      contextWindow: 1_000_000_000,
      script: { rules: [{ reply: 'Done.' }] },
    },
  ],
};
async function turn(troupe: Troupe): Promise<void> {
  await troupe.forTenant(TENANT).send('long', { author: AUTHOR, to: ['a'], content: 'Go on' });
  await troupe.idle();
}
try {
  {
    await using troupe = await createTroupe(company, { data: dir });
    await turn(troupe);
  }
  await fill(join(dir, 'troupe.db'), Date.now());
  await using troupe = await createTroupe(company, { data: dir });
  await turn(troupe);
  await turn(troupe);
  const all = await troupe.forTenant(TENANT).keys.create({ name: 'all', scopes: ['read', 'admin'] });
  const narrow = await troupe
    .forTenant(TENANT)
    .keys.create({ name: 'narrow', scopes: ['read'], conversations: ['nothing-*'] });
  // Without rate limits: this measures cost, not waiting.
  const options: AppOptions = {
    keyless: 'refused',
    authenticate: (credential) => troupe.authenticate(credential),
    traffic: { requestsPerSecond: 1_000_000, workPerSecond: 1e12, dearReads: 100 },
  };
  const app = createApp(troupe, options);
  const paths: [string, string, string][] = ROUTES.filter(({ scopes }) => scopes !== 'public')
    .map(routeName)
    .filter((route) => route.startsWith('GET '))
    .map((route) => {
      const path = route
        .slice(4)
        .replace('/turns/{turn}/diff/{other}', '/turns/long:a:1/diff/long:a:3')
        .replace('{conversation}', 'long')
        .replace('{agent}', 'a')
        .replace('{turn}', 'long:a:3')
        .replace('/webhooks/{webhook}', '/webhooks/none');
      if (path === '/api/search') return [route, `${path}?q=nowhere-to-be-found`, all.secret];
      if (path === '/api/events') return [route, `${path}?conversation=long&after=0`, all.secret];
      return [route, path, all.secret];
    });
  paths.unshift(['narrowed key', '/api/conversations', narrow.secret]);
  paths.push(
    ['rows that match nothing', '/api/conversations/long/rows?q=nowhere-to-be-found', all.secret],
    ['snapshot of the past', '/api/conversations/long/snapshot?at=150000', all.secret],
    ['5,000 conversations', '/api/conversations?limit=5000', all.secret],
    ['5,000 events', '/api/conversations/long/events?limit=5000', all.secret],
    ['export as html', '/api/conversations/long/export?format=html', all.secret],
    ['diff with the next', '/api/turns/long:a:1/diff/next', all.secret],
  );
  console.log('route | status | wall ms | CPU ms | longest hold ms | KiB');
  for (const [name, path, secret] of paths) {
    for (const times of [1, 5]) {
      if (times > 1 && !/narrowed|tasks|prompt|cost/.test(name)) continue;
      const holds = watchHolds();
      await new Promise((resolve) => setTimeout(resolve, 20));
      holds.longest = 0;
      const began = performance.now();
      const cpu = process.cpuUsage();
      let bytes = 0;
      const statuses = new Set<number>();
      await Promise.all(
        Array.from({ length: times }, async () => {
          const answer = await app.request(path, { headers: { authorization: `Bearer ${secret}` } });
          statuses.add(answer.status);
          const until = Date.now() + STREAM_MS;
          for await (const chunk of answer.body ?? []) {
            bytes += (chunk as Uint8Array).length;
            if (path.startsWith('/api/events') && (Date.now() > until || bytes > 20_000_000)) break;
          }
        }),
      );
      const used = process.cpuUsage(cpu);
      const wall = performance.now() - began;
      await new Promise((resolve) => setTimeout(resolve, 5));
      holds.end();
      const cells = [
        times > 1 ? `${name} x${times}` : name,
        [...statuses].join(),
        wall.toFixed(0),
        ((used.user + used.system) / 1_000).toFixed(0),
        holds.longest.toFixed(0),
        (bytes / 1_024).toFixed(0),
      ];
      console.log(cells.join(' | '));
    }
  }
} finally {
  await rm(dir, { recursive: true, force: true });
}
