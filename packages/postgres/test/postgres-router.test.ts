import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { addressKey } from '../../../src/events/index.ts';
import { createPostgresRouter } from '../src/queue/postgres-router.ts';
import type { WakeOutcome } from '../../../src/queue/router.ts';
import { routerConformance } from '../../testing/src/router-conformance.ts';
import { startPostgresNode } from '../../../test/services/postgres.ts';
import { POSTGRES_URL } from './postgres-stage.ts';
import { address, until } from '../../../test/queue/bullmq-stage.ts';
import { openQueueStage, type PostgresQueueStage } from './postgres-queue-stage.ts';

const DONE: WakeOutcome = { kind: 'done' };
const A = address('a');
const B = address('b');
const rethrow = (error: unknown): never => {
  throw error;
};
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A test that needs PostgreSQL; without one it is skipped, and its name says so. */
function postgresTest(name: string, run: (stage: PostgresQueueStage) => Promise<void>): void {
  if (!POSTGRES_URL) return test.skip(`${name} (skipped: no PostgreSQL)`, () => {});
  test(name, async () => {
    await using stage = await openQueueStage(POSTGRES_URL);
    await run(stage);
  });
}

describe('the PostgreSQL router keeps the contract', () => {
  const names = routerConformance(() => Promise.reject(new Error('only for the names')));
  names.forEach(({ group, name }, index) => {
    postgresTest(`${group} ${name}`, async (stage) => {
      await routerConformance(() => stage.open())[index]?.run();
    });
  });
});

describe('many wakes over many PostgreSQL routers', () => {
  postgresTest('every wake is followed by a run, and no actor runs twice at once', async (stage) => {
    const actors = Array.from({ length: 20 }, (_, index) => address(`n${index}`));
    const lastWake = new Map<string, number>();
    const lastStart = new Map<string, number>();
    const running = new Set<string>();
    let parallel = 0;
    for (let each = 0; each < 3; each += 1) {
      (await stage.open()).start(
        async (woken) => {
          const key = addressKey(woken);
          if (running.has(key)) parallel += 1;
          running.add(key);
          lastStart.set(key, performance.now());
          await pause(Math.random() * 4);
          running.delete(key);
          return DONE;
        },
        { concurrency: 8, onError: rethrow },
      );
    }
    const producers = [await stage.open(), await stage.open()];
    for (let round = 0; round < 100; round += 1) {
      await Promise.all(
        producers.flatMap((producer) =>
          actors.map(async (actor) => {
            // A run must start after the time at which the wake was sent.
            const began = performance.now();
            lastWake.set(addressKey(actor), Math.max(began, lastWake.get(addressKey(actor)) ?? 0));
            await producer.wake(actor);
          }),
        ),
      );
    }
    const behind = () =>
      [...lastWake].filter(([key, woken]) => (lastStart.get(key) ?? 0) < woken).map(([key]) => key);
    await until(() => behind().length === 0, { what: 'a run after every last wake' });
    expect(parallel).toBe(0);
    await until(async () => (await stage.sql('SELECT 1 FROM t.wakes')).length === 0, {
      what: 'an empty table',
    });
    expect(stage.warnings).toEqual([]);
  });

  postgresTest("wakes during another process's lease merge, and are served when it ends", async (stage) => {
    const router = await stage.open();
    const began = performance.now();
    let leaseEnds = Infinity;
    let busy = 0;
    const served: number[] = [];
    router.start(
      async () => {
        if (performance.now() < leaseEnds) {
          busy += 1;
          return { kind: 'busy', retryInMs: 150 };
        }
        served.push(performance.now());
        return DONE;
      },
      { concurrency: 4, onError: rethrow },
    );
    for (let each = 0; each < 40; each += 1) {
      await router.wake(A);
      await pause(5);
    }
    // Never before the last wake, however long the wakes took.
    leaseEnds = Math.max(performance.now(), began + 600);
    await until(() => served.length > 0, { what: 'a run after the lease' });
    expect(served[0]).toBeGreaterThanOrEqual(leaseEnds);
    expect(busy).toBeLessThan(4 * (1 + (leaseEnds - began) / 150));
  });

  postgresTest('a small tenant and a small conversation do not wait for a large one', async (stage) => {
    const router = await stage.open();
    const actorOf = (tenant: string, conversation: string, agent: string) => ({
      ...address(agent, tenant),
      conversation: address(conversation).agent as unknown as (typeof A)['conversation'],
    });
    const flood = Array.from({ length: 200 }, (_, at) => actorOf('big', 'long', `n${at}`));
    const many = Array.from({ length: 200 }, (_, at) => actorOf('big', `c${at}`, 'a'));
    await Promise.all([...flood, ...many].map((actor) => router.wake(actor)));
    await router.wake(actorOf('big', 'short', 'b'));
    await router.wake(actorOf('small', 'c', 'b'));
    const order: string[] = [];
    router.start(
      async (woken) => (order.push(`${woken.tenant} ${woken.conversation} ${woken.agent}`), DONE),
      {
        concurrency: 1,
        onError: rethrow,
      },
    );
    await until(() => order.length === 402, { what: 'all runs' });
    expect(order.indexOf('small c b')).toBeLessThan(5);
    // It ranks after the first wake of each conversation of the tenant, not after all wakes of the long conversation.
    expect(order.indexOf('big short b')).toBeGreaterThan(200);
    const ofLong = order.filter((each) => each.startsWith('big long')).map((each) => each.split(' ')[2]);
    expect(ofLong).toEqual(flood.map(({ agent }) => agent));
    const last = many.map(({ conversation }) => order.indexOf(`big ${conversation} a`));
    expect(last).toEqual(last.toSorted((a, b) => a - b));
  });

  postgresTest('a tenant holds no more waiting actors than allowed', async (stage) => {
    const router = await stage.open({ mostWaiting: 64 });
    for (let at = 0; at < 200; at += 1) await router.wake(address(`n${at}`));
    expect(await router.backlog(A.tenant)).toBeLessThanOrEqual(64);
    await router.wake(address('n1', 'other'));
    expect((await router.depth()).waiting).toBeLessThanOrEqual(65);
  });
});

describe('what may happen to the processes and the server', () => {
  postgresTest('the wake of a killed process is served by another', async (stage) => {
    const lockMs = 600;
    const member = await stage.join();
    const victim = createPostgresRouter({
      ...member,
      channel: stage.channels.wakes,
      clock: systemClock,
      onWarning: () => {},
      lockMs,
    });
    let taken = 0;
    victim.start(() => ((taken += 1), new Promise<never>(() => {})), { concurrency: 4, onError: () => {} });
    await victim.wake(A);
    await victim.wake(B);
    await until(() => taken === 2, { what: 'both are taken' });
    await member.kill();
    const starts: string[] = [];
    const heir = await stage.open({ lockMs });
    heir.start(async ({ agent }) => (starts.push(agent), DONE), { concurrency: 1, onError: rethrow });
    await until(() => starts.length === 2, { what: 'both are served' });
    expect(starts.toSorted()).toEqual(['a', 'b']);
    expect(
      stage.warnings.filter((each) => each.includes('2 wakes had stopped with their process')),
    ).toHaveLength(1);
  });

  postgresTest('a live holder keeps its wakes however long they take', async (stage) => {
    const gate = Promise.withResolvers<void>();
    let starts = 0;
    for (let each = 0; each < 2; each += 1)
      (await stage.open({ lockMs: 300, pollMs: 50 })).start(
        async () => ((starts += 1), await gate.promise, DONE),
        { concurrency: 2, onError: rethrow },
      );
    const producer = await stage.open();
    await producer.wake(A);
    await until(() => starts === 1, { what: 'the run' });
    await pause(1_200);
    expect(starts).toBe(1);
    gate.resolve();
    await until(async () => (await producer.depth()).active === 0, { what: 'an idle queue' });
  });

  postgresTest('without notifications wakes are found by looking', async (stage) => {
    const worker = await stage.open({ channel: 'another', deafPollMs: 50, pollMs: 50 });
    let starts = 0;
    worker.start(async () => ((starts += 1), DONE), { concurrency: 1, onError: rethrow });
    const producer = await stage.open();
    await producer.wake(A);
    await until(() => starts === 1, { what: 'the look' });
  });

  postgresTest('lost tables are created again, and the store is asked who has work', async (stage) => {
    const router = await stage.open({ pollMs: 50 });
    let starts = 0;
    let lost = 0;
    const onLost = () => (lost += 1);
    router.start(async () => ((starts += 1), DONE), { concurrency: 1, onError: rethrow, onLost });
    await stage.sql('DROP TABLE t.wakes');
    await until(() => lost > 0, { what: 'the loss is noticed' });
    await router.check();
    await router.wake(A);
    await until(() => starts === 1, { what: 'a run' });
    expect(stage.warnings.some((each) => each.includes('are created again'))).toBe(true);
  });
});

test('wakes are served after the server was killed and started again', async () => {
  const server = await startPostgresNode();
  if ('not' in server) return test.skip('skipped: no PostgreSQL to start');
  onTestFinished(() => server.stop());
  await using stage = await openQueueStage(server.url);
  const router = await stage.open();
  const starts: string[] = [];
  let lost = 0;
  router.start(async ({ agent }) => (starts.push(agent), DONE), {
    concurrency: 2,
    onError: rethrow,
    onLost: () => (lost += 1),
  });
  await router.wake(A);
  await until(() => starts.length === 1, { what: 'the first run' });
  await server.node.kill();
  // Connections end a moment after their server.
  const isGone = async () => (await router.check().catch(() => 'gone')) === 'gone';
  await until(isGone, { what: 'the end of the server' });
  await expect(router.wake(A)).rejects.toMatchObject({ code: 'queue_unavailable' });
  await expect(router.check()).rejects.toMatchObject({ code: 'queue_unavailable' });
  await server.node.start();
  await until(() => lost > 0, { what: 'the store is asked who has work' });
  await router.wake(B);
  await until(() => starts.includes('b'), { what: 'the run afterwards' });
  await router.check();
});
