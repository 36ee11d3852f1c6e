import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';

test('the fake clock wakes sleepers in the order of their due times, at those times', async () => {
  const clock = createFakeClock(1_000);
  const woken: string[] = [];
  const sleeper = async (name: string, ms: number) => {
    await clock.sleep(ms);
    woken.push(`${name}@${clock.now()}`);
  };
  void sleeper('late', 30);
  void sleeper('early', 10);
  void sleeper('also early', 10);
  void sleeper('never', 31);
  await clock.advance(30);
  expect(woken).toEqual(['early@1010', 'also early@1010', 'late@1030']);
  expect(clock.sleeping()).toBe(1);
});

test('the fake clock serves a sleep that begins while time moves', async () => {
  const clock = createFakeClock();
  const woken: number[] = [];
  async function twice(): Promise<void> {
    await clock.sleep(10);
    await clock.sleep(10);
    woken.push(clock.monotonic());
  }
  void twice();
  await clock.advance(100);
  expect(woken).toEqual([20]);
  expect(clock.monotonic()).toBe(100);
});

test('a sleep on the fake clock ends when its signal aborts', async () => {
  const clock = createFakeClock();
  const controller = new AbortController();
  const slept = clock.sleep(1_000, controller.signal);
  controller.abort();
  await slept;
  await clock.sleep(1_000, controller.signal);
  expect(clock.sleeping()).toBe(0);
});
