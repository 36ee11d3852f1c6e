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
    expect(pace.limit()).toBe(4);
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

test('a tenant with nothing at work is given a start at once where another one keeps the event loop busy', async () => {
  let now = 0;
  // Each look at the clock finds it 100 ms later: every turn of the loop is a long one.
  const clock = { ...createFakeClock(), monotonic: () => (now += 100) };
  const router = createInProcessRouter({ clock });
  const ends = Promise.withResolvers<{ kind: 'done' }>();
  const started: string[] = [];
  const quiet = Promise.withResolvers<void>();
  for (let n = 0; n < 200; n += 1) await router.wake(address('noisy', `c-${n}`));
  router.start(
    ({ tenant }) => {
      started.push(tenant);
      if (tenant === 'quiet') quiet.resolve();
      return ends.promise;
    },
    {
      concurrency: MOST,
      onError(error) {
        throw error;
      },
    },
  );
  for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  const before = started.length;
  expect(before).toBeLessThan(MOST / 2);
  await router.wake(address('quiet', 'c'));
  await quiet.promise;
  expect(started.filter((tenant) => tenant === 'noisy')).toHaveLength(before);
  ends.resolve({ kind: 'done' });
  await router.close();
});
