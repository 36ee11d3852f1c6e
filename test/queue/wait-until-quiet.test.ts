import { expect, test } from 'vitest';
import { TroupeError } from '../../src/errors.ts';
import { waitUntilQuiet } from '../../src/facade/wait-until-quiet.ts';
import type { QueueDepth } from '../../src/queue/router.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const AWAY = new TroupeError('queue_unavailable', 'Command timed out');
const AT_WORK: QueueDepth = { waiting: 1, active: 0, delayed: 0 };
const QUIET: QueueDepth = { waiting: 0, active: 0, delayed: 0 };

/** A wait on a queue that answers by the time of the clock; what has become of it at a time. */
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

test('waiting until all is quiet lasts over a queue that is away for some seconds', async () => {
  const wait = waiting((ms) => (ms < 1_000 ? AT_WORK : ms < 9_000 ? throws(AWAY) : QUIET));
  expect(await wait.at(8_900)).toBe('waiting');
  expect(await wait.at(9_100)).toBe('quiet');
});

test('waiting until all is quiet ends with a queue that stays away', async () => {
  const wait = waiting((ms) => (ms < 1_000 ? AT_WORK : throws(AWAY)));
  expect(await wait.at(10_900)).toBe('waiting');
  expect(await wait.at(11_100)).toBe('queue_unavailable');
});

test('waiting until all is quiet ends with a troupe that is closed', async () => {
  const wait = waiting(() => throws(AWAY));
  expect(await wait.at(50)).toBe('waiting');
  wait.close();
  expect(await wait.at(200)).toBe('queue_unavailable');
});

test('waiting until all is quiet ends at once with what is no outage', async () => {
  const wait = waiting(() => throws(new Error('broken')));
  expect(await wait.at(10)).toBe('Error: broken');
});
