import { expect, test } from 'vitest';
import { TroupeError } from '../../src/base/errors.ts';
import { waitUntilQuiet } from '../../src/library/facade/tenant-facade.ts';
import type { QueueDepth } from '../../src/queue/router.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';

const UNAVAILABLE = new TroupeError('queue_unavailable', 'Command timed out');
const BUSY: QueueDepth = { waiting: 1, active: 0, delayed: 0 };
const QUIET: QueueDepth = { waiting: 0, active: 0, delayed: 0 };

/** Waits on a queue whose answers depend on the time. `at` gives the state of the wait at a time. */
function waiting(answer: (at: number) => QueueDepth) {
  const clock = createFakeClock();
  const closed = new AbortController();
  const began = clock.monotonic();
  let state = 'waiting';
  const depth = async () => answer(clock.monotonic() - began);
  void waitUntilQuiet({ depth }, { clock, closed: closed.signal }).then(
    () => (state = 'quiet'),
    (error: unknown) => (state = error instanceof TroupeError ? error.code : String(error)),
  );
  async function at(ms: number): Promise<string> {
    while (clock.monotonic() - began < ms) await clock.advance(5);
    return state;
  }
  return { at: (ms: number) => at(ms), close: () => closed.abort() };
}

function throws(error: Error): never {
  throw error;
}

test('waiting until all is quiet survives an outage of the queue of some seconds', async () => {
  const wait = waiting((ms) => (ms < 1_000 ? BUSY : ms < 9_000 ? throws(UNAVAILABLE) : QUIET));
  expect(await wait.at(8_900)).toBe('waiting');
  expect(await wait.at(9_100)).toBe('quiet');
});

test('waiting until all is quiet fails when the queue stays unavailable', async () => {
  const wait = waiting((ms) => (ms < 1_000 ? BUSY : throws(UNAVAILABLE)));
  expect(await wait.at(10_900)).toBe('waiting');
  expect(await wait.at(11_100)).toBe('queue_unavailable');
});

test('waiting until all is quiet fails when the troupe is closed', async () => {
  const wait = waiting(() => throws(UNAVAILABLE));
  expect(await wait.at(50)).toBe('waiting');
  wait.close();
  expect(await wait.at(200)).toBe('queue_unavailable');
});

test('waiting until all is quiet fails at once on an error that is not an outage', async () => {
  const wait = waiting(() => throws(new Error('broken')));
  expect(await wait.at(10)).toBe('Error: broken');
});
