import { describe, expect, test } from 'vitest';
import { TroupeError } from '../../src/base/errors.ts';
import { createMongoClient } from '../../src/store/mongo/connect-mongo.ts';
import type { DocumentDriver } from '../../src/store/documents/document-driver.ts';
import { rejectsWith } from '../../packages/testing/src/store-stage.ts';
import { cutProxy, hostOf } from './cut-proxy.ts';
import { eventRow } from './event-row-of.ts';
import { IS_SET, MONGO, MONGODB_URL, mongoStage, throughProxy } from './mongo-stage.ts';

const LOG = { tenant: 'acme', conversation: 'talk' };

/** Repeats the append with the same id until it succeeds, as callers must (S5). */
async function appendForSure(driver: DocumentDriver, id: string): Promise<number> {
  for (;;) {
    try {
      const [outcome] = await driver.append([eventRow(id, LOG)]);
      return outcome!.seq;
    } catch (error) {
      expect(error).toBeInstanceOf(TroupeError);
      expect((error as TroupeError).code).toBe('store_unavailable');
    }
  }
}

test('every wait of the MongoDB driver ends within ten seconds', () => {
  const { serverSelectionTimeoutMS, connectTimeoutMS, socketTimeoutMS, waitQueueTimeoutMS } =
    createMongoClient('mongodb://127.0.0.1/').options;
  for (const ms of [serverSelectionTimeoutMS, connectTimeoutMS, socketTimeoutMS, waitQueueTimeoutMS]) {
    expect(ms).toBeGreaterThan(0); // 0 is no limit.
    expect(ms).toBeLessThanOrEqual(10_000);
  }
});

describe.skipIf(!MONGODB_URL || IS_SET)(MONGO, () => {
  test('connections cut during appends: every event once, a dense log', async () => {
    const stage = mongoStage();
    const proxy = await cutProxy(hostOf(MONGODB_URL));
    const driver = await stage.open({ url: throughProxy(MONGODB_URL, proxy.port) });
    let cuts = 0;
    const ids = Array.from({ length: 120 }, (_, index) => `e${index}`);
    const queue = ids.values();
    const writers = Array.from({ length: 4 }, async () => {
      const seqs: number[] = [];
      for (const id of queue) {
        // While the other writers append.
        if (Number(id.slice(1)) % 20 === 19) {
          proxy.cut();
          cuts += 1;
        }
        seqs.push(await appendForSure(driver, id));
      }
      return seqs;
    });
    const seqs = (await Promise.all(writers)).flat();
    expect(cuts).toBe(6);
    expect(seqs.toSorted((a, b) => a - b)).toEqual(ids.map((_, index) => index + 1));
    const rows = await (await stage.open()).readEvents({ ...LOG, after: 0, limit: 1000 });
    expect(rows.map(({ seq }) => seq)).toEqual(ids.map((_, index) => index + 1));
    expect(new Set(rows.map(({ id }) => id)).size).toBe(ids.length);
  });

  test('operations fail while the server is down, and work again afterwards', async () => {
    const stage = mongoStage();
    const proxy = await cutProxy(hostOf(MONGODB_URL));
    const driver = await stage.open({ url: throughProxy(MONGODB_URL, proxy.port) });
    await driver.append([eventRow('a', LOG)]);
    await proxy.refuse();
    await Promise.all([
      rejectsWith('store_unavailable', driver.append([eventRow('b', LOG)])),
      rejectsWith('store_unavailable', driver.head(LOG)),
      rejectsWith(
        'store_unavailable',
        driver.acquire({ ...LOG, agent: 'x' }, { owner: 'o', now: 1, until: 2 }),
      ),
    ]);
    await proxy.accept();
    expect(await appendForSure(driver, 'b')).toBe(2);
  });

  test('a server that stops answering does not block an operation for ever', async () => {
    const stage = mongoStage();
    const proxy = await cutProxy(hostOf(MONGODB_URL));
    const driver = await stage.open({ url: throughProxy(MONGODB_URL, proxy.port) });
    await driver.append([eventRow('a', LOG)]);
    proxy.hold();
    await Promise.all([
      rejectsWith('store_unavailable', driver.append([eventRow('b', LOG)])),
      rejectsWith('store_unavailable', driver.readActor({ ...LOG, agent: 'x' })),
    ]);
    proxy.release();
    proxy.cut();
    expect(await appendForSure(driver, 'b')).toBe(2);
  });
});
