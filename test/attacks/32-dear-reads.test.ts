import { setImmediate } from 'node:timers/promises';
import { expect } from 'vitest';
import { routeName } from '../../src/http/route.ts';
import { ROUTES } from '../../src/http/routes/index.ts';
import { ANSWER_BYTES } from '../../src/http/routes/conversations.ts';
import { createApp } from '../../src/http/api/index.ts';
import { dataPaths } from '../../src/store/sqlite/data-lock.ts';
import { openSqliteDriver } from '../../src/store/sqlite/sqlite-driver.ts';
import { createTroupe } from '../../src/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { tempDir } from '../store/temp-dir.ts';
import { attack } from './attack.ts';

const EVENTS = 2_000;
const CONVERSATIONS = 3_000;
const COMPANY = {
  agents: [{ id: 'a', provider: 'scripted' as const, script: { rules: [{ reply: 'Done.' }] } }],
};
const EVE = { kind: 'user', id: 'eve', name: 'Eve' } as const;

/** A tenant with one long conversation and many short ones, in which an agent has taken a turn. */
async function openLarge(text = 'words '): Promise<Troupe> {
  const dir = tempDir();
  const small = await createTroupe(COMPANY, { data: dir });
  await small.forTenant('acme').send('long', { author: EVE, to: ['a'], content: 'Begin' });
  await small.idle();
  await small.close();
  const driver = await openSqliteDriver({ path: dataPaths(dir).database });
  const row = { tenant: 'acme', kind: 'message', to: [], hash: '', tokens: 5, turn: null };
  const data = JSON.stringify({ author: EVE, body: { content: text } });
  const long = Array.from({ length: EVENTS }, (_, at) => ({
    ...row,
    // Newer than all others, so that lists begin with it.
    at: CONVERSATIONS + at,
    conversation: 'long',
    id: `e${at}`,
    data,
  }));
  const many = Array.from({ length: CONVERSATIONS }, (_, at) => ({
    ...row,
    at,
    conversation: `room-${at}`,
    id: 'e',
    data,
  }));
  await driver.append([...long, ...many]);
  await driver.close();
  return createTroupe(COMPANY, { data: dir });
}

async function keyOf(troupe: Troupe, tenant: string, conversations?: string[]): Promise<RequestInit> {
  const key = {
    name: 'k',
    scopes: ['read' as const, 'admin' as const],
    ...(conversations && { conversations }),
  };
  const { secret } = await troupe.forTenant(tenant).keys.create(key);
  return { headers: { authorization: `Bearer ${secret}` } };
}

function appOf(troupe: Troupe, traffic: Parameters<typeof createApp>[1] & object = {}) {
  return createApp(troupe, {
    keyless: 'refused',
    authenticate: (credential) => troupe.authenticate(credential),
    ...traffic,
  });
}

/** Counts the conversations that the store returns for listings. */
function countingRows(troupe: Troupe, listed: { rows: number }): Troupe {
  return {
    ...troupe,
    forTenant(name) {
      const tenant = troupe.forTenant(name);
      return {
        ...tenant,
        async conversations(limit) {
          const found = await tenant.conversations(limit);
          listed.rows += found.length;
          return found;
        },
        async listConversations(query) {
          const page = await tenant.listConversations(query);
          listed.rows += page.conversations.length;
          return page;
        },
      };
    },
  };
}

/** Reads whose prompts contain all messages of people as one message. */
const MERGED = [
  '/api/conversations/long/agents/a/prompt',
  '/api/conversations/long/agents/a/cache-cost',
  '/api/turns/long:a:2/prompt',
  '/api/turns/long:a:1/diff/long:a:2',
];

attack(32, 'many messages that form one message of a prompt are joined in slices', async (refused) => {
  await using troupe = await openLarge('words of many people in a row, '.repeat(100));
  const tenant = troupe.forTenant('acme');
  const app = appOf(troupe, { traffic: { requestsPerSecond: 10_000, workPerSecond: 1_000_000 } });
  const eve = await keyOf(troupe, 'acme');
  const turnsOf = async (path: string) => {
    let [turns, isDone] = [0, false];
    const asked = Promise.resolve(app.request(path, eve)).then(async (answer) => {
      await answer.arrayBuffer();
      isDone = true;
      return answer.status;
    });
    while (!isDone) {
      turns += 1;
      await setImmediate();
    }
    expect(await asked, path).toBe(200);
    return turns;
  };
  // Waiting, not yet in a turn.
  const found = new Map([[MERGED[0], await turnsOf(MERGED[0] as string)]]);
  await tenant.send('long', { author: EVE, to: ['a'], content: 'Go on' });
  await tenant.idle();
  for (const path of MERGED.slice(1)) found.set(path, await turnsOf(path));
  // 6 MB of words are hashed, joined and rendered in slices of 32 kB, not in the log's ten pages or so.
  for (const [path, turns] of found) expect(turns, path).toBeGreaterThan(PIECES);
  refused('yields to the event loop');
});

const PIECES = 80;

/** Every read route, with the largest objects as its parameters. */
const READS = ROUTES.filter(({ scopes }) => scopes !== 'public')
  .map(routeName)
  .filter((route) => route.startsWith('GET ') && route !== 'GET /api/events')
  .map((route) =>
    route
      .slice(4)
      .replace('/turns/{turn}/diff/{other}', '/turns/long:a:1/diff/next')
      .replace('{conversation}', 'long')
      .replace('{agent}', 'a')
      .replace('{turn}', 'long:a:1')
      .replace(/{(?:person|webhook)}/, 'none')
      // All have the word, and none the words.
      .replace(/search$/, 'search?q=%22words%20words%22'),
  );

attack(
  32,
  'twenty concurrent reads of a long log on every route let other callers through',
  async (refused) => {
    await using troupe = await openLarge();
    // Without limits: this test is about who waits for whom, not for how long.
    const app = appOf(troupe, { traffic: { requestsPerSecond: 10_000, workPerSecond: 1_000_000 } });
    const eve = await keyOf(troupe, 'acme');
    const ben = await keyOf(troupe, 'zeta');
    expect((await app.request('/api/whoami', ben)).status).toBe(200);
    for (const path of READS) {
      let open = 20;
      const statuses = new Set<number>();
      const dear = Array.from({ length: open }, async () => {
        const answer = await app.request(path, eve);
        await answer.arrayBuffer();
        statuses.add(answer.status);
        open -= 1;
      });
      // The first of them are running; later ones queue behind them.
      await setImmediate();
      const cheap = await app.request('/api/conversations', ben);
      const left = open;
      expect(cheap.status, path).toBe(200);
      await Promise.all(dear);
      expect(
        [...statuses].filter((status) => status >= 500 && status !== 503),
        path,
      ).toEqual([]);
      if (DEAR.test(path)) expect(left, `${path}: answered before all were done`).toBeGreaterThan(0);
    }
    refused('waits in a separate queue');
  },
);

/**
 * Reads whose cost grows with a log. Those that take one step are left out: a snapshot after the overview, and the
 * tasks after the conversation, share one fold.
 */
const DEAR = /long$|prompt|cost|diff|export|inbox|search/;

attack(
  32,
  'a caller that reads more than its share waits and is refused; another caller is not',
  async (refused) => {
    await using troupe = await openLarge();
    const app = appOf(troupe, { traffic: { workPerSecond: 100 } });
    const eve = await keyOf(troupe, 'acme');
    const ben = await keyOf(troupe, 'zeta');
    const read = async (who: RequestInit, path = '/api/conversations/long/events?limit=5000') =>
      app.request(path, who);
    // More than ten seconds' worth, the maximum at once.
    expect((await read(eve)).status).toBe(200);
    const waiting = Array.from({ length: 45 }, () => read(eve));
    const answer = await Promise.race(waiting);
    expect(answer.status).toBe(429);
    expect(await answer.json()).toMatchObject({ error: { code: 'rate_limited', data: { limit: 100 } } });
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    refused('429 rate_limited');
    expect((await read(ben, '/api/conversations')).status).toBe(200);
  },
);

attack(32, 'a key for a few of many conversations lists them without reading the others', async (refused) => {
  await using troupe = await openLarge();
  const listed = { rows: 0 };
  const app = appOf(countingRows(troupe, listed), { traffic: { workPerSecond: 1 } });
  const none = await keyOf(troupe, 'acme', ['nothing-*']);
  // Ten rows may be read at once; if a listing scanned all rows, the second one would wait for an hour.
  for (let times = 0; times < 30; times += 1) {
    const answer = await app.request('/api/conversations', none);
    expect(await answer.json()).toMatchObject({ conversations: [] });
  }
  expect(listed.rows).toBe(0);
  const some = await keyOf(troupe, 'acme', ['room-12', 'room-299*']);
  const { conversations } = (await (await app.request('/api/conversations', some)).json()) as {
    conversations: { id: string }[];
  };
  expect(conversations.map(({ id }) => id)).toEqual([
    ...Array.from({ length: 10 }, (_, index) => `room-${2_999 - index}`),
    'room-299',
    'room-12',
  ]);
  expect(listed.rows).toBe(conversations.length);
  refused('reads no other rows');
});

attack(32, 'a list of conversations has each of them once, with any page size', async (refused) => {
  await using troupe = await openLarge();
  const app = appOf(troupe);
  const eve = await keyOf(troupe, 'acme');
  const ids: string[] = [];
  for (let query = '?limit=700'; query !== '';) {
    const answer = await app.request(`/api/conversations${query}`, eve);
    const { conversations, next } = (await answer.json()) as {
      conversations: { id: string }[];
      next?: string | null;
    };
    expect(conversations.length).toBeLessThanOrEqual(700);
    ids.push(...conversations.map(({ id }) => id));
    query = typeof next !== 'string' ? '' : `?limit=700&before=${encodeURIComponent(next)}`;
  }
  expect(ids).toHaveLength(CONVERSATIONS + 1);
  expect(new Set(ids).size).toBe(CONVERSATIONS + 1);
  expect((await app.request('/api/conversations?before=nonsense', eve)).status).toBe(400);
  refused('event_invalid');
});

attack(32, 'no answer is larger than a few MiB, and each names the place to continue', async (refused) => {
  await using troupe = await openLarge('much '.repeat(1_000));
  const app = appOf(troupe);
  const eve = await keyOf(troupe, 'acme');
  const paths = READS.filter((path) => !path.endsWith('/export'));
  for (const path of [
    ...paths,
    '/api/conversations?limit=5000',
    '/api/conversations/long/events?limit=5000',
  ]) {
    const text = await (await app.request(path, eve)).text();
    expect(text.length, path).toBeLessThan(2 * ANSWER_BYTES);
  }
  const prompt = (await (await app.request('/api/conversations/long/agents/a/prompt', eve)).json()) as {
    messages: { truncated?: number }[];
    next?: number | null;
  };
  const isCut =
    typeof prompt.next === 'number' || prompt.messages.some(({ truncated }) => truncated !== undefined);
  expect(isCut).toBe(true);
  refused('next, truncated');
});
