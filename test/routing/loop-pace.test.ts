import { describe, expect, test } from 'vitest';
import { ActorAddress } from '../../src/events/index.ts';
import { createInProcessRouter } from '../../src/routing/in-process.ts';
import { createLoopPace } from '../../src/routing/loop-pace.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const MOST = 64;

function address(tenant: string, conversation: string): ActorAddress {
  return ActorAddress.parse({ tenant, conversation, agent: 'bo' });
}

describe('how many actors one process works on at once', () => {
  test('is all that is allowed as long as the event loop is idle', () => {
    const pace = createLoopPace(MOST);
    for (let beat = 0; beat < 1_000; beat += 1) pace.beat(0, MOST);
    expect(pace.limit()).toBe(MOST);
  });

  test('falls to a few where its turns are long, and is all again as soon as they are short', () => {
    const pace = createLoopPace(MOST);
    for (let beat = 0; beat < 100; beat += 1) pace.beat(50, pace.limit());
    expect(pace.limit()).toBe(8);
    for (let beat = 0; beat < MOST; beat += 1) pace.beat(0, pace.limit());
    expect(pace.limit()).toBe(MOST);
  });

  test('is never more than what is allowed, and one turn that was long by chance changes little', () => {
    const few = createLoopPace(2);
    few.beat(1_000, 2);
    expect(few.limit()).toBe(2);
    const pace = createLoopPace(MOST);
    pace.beat(1_000, MOST);
    expect(pace.limit()).toBeGreaterThan(50);
  });
});

/** A router whose actors never end, on a clock that makes every turn of the event loop a long one. */
function busyRouter() {
  let now = 0;
  const router = createInProcessRouter({ clock: { ...createFakeClock(), monotonic: () => (now += 20) } });
  const ends = Promise.withResolvers<{ kind: 'done' }>();
  const started: string[] = [];
  const start = () =>
    router.start(
      ({ tenant }) => {
        started.push(tenant);
        return ends.promise;
      },
      {
        concurrency: MOST,
        onError(error) {
          throw error;
        },
      },
    );
  const close = () => {
    ends.resolve({ kind: 'done' });
    return router.close();
  };
  return { router, started, start, close };
}

async function loopTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test('a tenant with nothing at work is given a start at once where another one keeps the event loop busy', async () => {
  const { router, started, start, close } = busyRouter();
  await router.wake(address('quiet', 'earlier'));
  for (let n = 0; n < 200; n += 1) await router.wake(address('noisy', `c-${n}`));
  start();
  await loopTurns(20);
  const noisy = started.filter((tenant) => tenant === 'noisy').length;
  expect(noisy).toBeLessThan(MOST / 2);
  await router.wake(address('calm', 'c'));
  await loopTurns(2);
  expect(started.filter((tenant) => tenant === 'calm')).toHaveLength(1);
  expect(started.filter((tenant) => tenant === 'noisy')).toHaveLength(noisy);
  await close();
});

test('a process with one tenant works on as many actors as it may, however long the turns of its event loop', async () => {
  const { router, started, start, close } = busyRouter();
  for (let n = 0; n < 200; n += 1) await router.wake(address('alone', `c-${n}`));
  start();
  await loopTurns(20);
  expect(started).toHaveLength(MOST);
  await close();
});
