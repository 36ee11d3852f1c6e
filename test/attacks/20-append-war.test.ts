import { expect } from 'vitest';
import { createApp, serveHttp } from '../../src/http/api/index.ts';
import { createDocumentDriver } from '../../src/store/documents/document-driver.ts';
import { createMemoryDocuments, newMemoryData } from '../../sim/memory-documents.ts';
import type { StoreDriver } from '../../src/store/driver.ts';
import { TroupeError } from '../../src/base/errors.ts';
import { eventRow } from '../store/event-row-of.ts';
import { inOrder, says } from '../support/engine-models.ts';
import { openStage as openEngine } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';
import { attack } from './attack.ts';
import { ANA, askServer, openStage, statusOf } from './stage.ts';

const WRITERS = 32;
const EACH = 5;
const PATH = '/api/conversations/hot/events';

/** `1, 2, ... n` */
function upTo(n: number): number[] {
  return Array.from({ length: n }, (_, index) => index + 1);
}

attack(
  20,
  'events of thirty-two writers of one conversation are all stored once, in a dense order',
  async (refused) => {
    await using stage = await openStage();
    const answers = await Promise.all(
      upTo(WRITERS).map(async (writer) => {
        const own: string[] = [];
        for (const n of upTo(EACH)) {
          const body = { id: `w${writer}-${n}`, author: ANA, content: `${writer} says ${n}` };
          // Twice, as by a client that lost the answer.
          const both = await Promise.all([stage.ask(PATH, { body }), stage.ask(PATH, { body })]);
          own.push(...both.map(statusOf));
        }
        return own;
      }),
    );
    const statuses = answers.flat();
    expect(new Set(statuses)).toEqual(new Set(['200', '201']));
    expect(statuses.filter((status) => status === '201')).toHaveLength(WRITERS * EACH);
    const events = await stage.events('hot');
    expect(events.map(({ seq }) => seq)).toEqual(upTo(WRITERS * EACH));
    for (const writer of upTo(WRITERS)) {
      const own = events.flatMap(({ id }) => (id.startsWith(`w${writer}-`) ? [id] : []));
      expect(own).toEqual(upTo(EACH).map((n) => `w${writer}-${n}`));
    }
    expect(stage.errors).toEqual([]);
    refused('each stored once');
  },
);

attack(20, 'writers in many processes lose races a bounded number of times', async (refused) => {
  const data = newMemoryData();
  let slept = 0;
  const drivers = upTo(WRITERS).map(() =>
    createDocumentDriver(
      createMemoryDocuments({
        data,
        // After each step of a write, every other process may take one.
        gate: async (_, work) => {
          await new Promise((resolve) => void setImmediate(resolve));
          return work();
        },
      }),
      {
        random: Math.random,
        sleep: () => {
          slept += 1;
          return new Promise((resolve) => void setImmediate(resolve));
        },
      },
    ),
  );
  const log = { tenant: 'acme', conversation: 'hot' };
  await Promise.all(
    drivers.map(async (driver, writer) => {
      for (const n of upTo(EACH)) await driver.append([eventRow(`w${writer}-${n}`, log)]);
    }),
  );
  const rows = await drivers[0]?.readEvents({ ...log, after: 0, limit: 10_000 });
  expect(rows?.map(({ seq }) => seq)).toEqual(upTo(WRITERS * EACH));
  const clashes = drivers.reduce((sum, { stats }) => sum + stats.clashes, 0);
  console.log(
    `${WRITERS} processes: ${(clashes / (WRITERS * EACH)).toFixed(1)} races lost per append, ${slept} pauses`,
  );
  // Each lost race has a winner: a writer loses at most as often as there are others.
  expect(clashes).toBeGreaterThan(0);
  expect(clashes / (WRITERS * EACH)).toBeLessThan(WRITERS);
  refused('bounded retries');
});

attack(
  20,
  'while the store is unavailable writers are asked to retry, and nothing is half done',
  async (refused) => {
    let isAway = false;
    const driver = await openDriver();
    const flaky: StoreDriver = {
      ...driver,
      append: (rows) =>
        isAway
          ? Promise.reject(new TroupeError('store_unavailable', 'the store is unavailable'))
          : driver.append(rows),
    };
    const model = inOrder(says('fine'));
    const engine = await openEngine({ driver: flaky, agents: [{ id: 'bo', model }] });
    const server = await serveHttp(createApp(engine.troupe), { port: 0 });
    const body = { id: 'm1', author: ANA, to: ['bo'], content: 'hello' };
    isAway = true;
    const away = await Promise.all(upTo(WRITERS).map(() => askServer(server.url, PATH, { body })));
    for (const answer of away) {
      expect([statusOf(answer), Number(answer.headers.get('retry-after'))]).toEqual([
        '503 store_unavailable',
        expect.any(Number),
      ]);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    await engine.quiet();
    expect(model.requests).toEqual([]);
    expect(await engine.troupe.conversations()).toEqual([]);
    isAway = false;
    const back = await Promise.all(upTo(WRITERS).map(() => askServer(server.url, PATH, { body })));
    expect(back.map(statusOf).filter((each) => each === '201')).toHaveLength(1);
    await engine.quiet();
    expect(model.requests).toHaveLength(1);
    await server.close();
    await engine.engine.stop();
    refused('503 store_unavailable, Retry-After');
  },
);
