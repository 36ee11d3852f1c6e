import { expect, test } from 'vitest';
import { createRemoteEvents } from '../../src/actors/log/recent-events.ts';
import type { Event } from '../../src/events/index.ts';
import { logOf, turns } from '../support/engine-stage.ts';

const LOG = logOf('c');

function watched(isWatched = true) {
  const told: number[] = [];
  const reads: number[] = [];
  let head = 0;
  const remote = createRemoteEvents({
    store: {
      async read(_, { after, upTo = head }) {
        reads.push(after);
        await turns();
        return Array.from(
          { length: Math.min(upTo, head) - after },
          (_, i) => ({ seq: after + i + 1 }) as Event,
        );
      },
    },
    notify: (_, event) => told.push(event.seq),
    isWatched: () => isWatched,
    onWarning: (error) => {
      throw error;
    },
  });
  return {
    told,
    reads,
    own: (seq: number) => {
      head = Math.max(head, seq);
      remote.own(LOG, { seq } as Event);
      told.push(seq);
    },
    during: (append: () => Promise<void>) => remote.during(LOG, append),
    hear: (after: number, to: number) => {
      head = Math.max(head, to);
      return remote.hear({ type: 'appended', ...LOG, after, head: to });
    },
  };
}

test('events of other processes are reported once and in order, among our own', async () => {
  const { told, own, hear } = watched();
  own(1);
  await hear(1, 3);
  own(4);
  own(6);
  await hear(4, 5);
  await hear(1, 3);
  await hear(6, 8);
  expect(told).toEqual([1, 2, 3, 4, 6, 5, 7, 8]);
});

test('what others append before the store has answered here is told after our own event', async () => {
  const { told, own, hear, during } = watched();
  const stored = Promise.withResolvers<void>();
  const appended = during(async () => {
    await stored.promise;
    own(1);
  });
  await Promise.all([hear(1, 2), hear(2, 4)]);
  expect(told).toEqual([]);
  stored.resolve();
  await appended;
  await turns(3);
  expect(told).toEqual([1, 2, 3, 4]);
  await hear(4, 5);
  expect(told).toEqual([1, 2, 3, 4, 5]);
});

test('an append that fails holds nothing back', async () => {
  const { told, hear, during } = watched();
  const failed = during(() => Promise.reject(new Error('away')));
  await hear(0, 1);
  await expect(failed).rejects.toThrow('away');
  await turns(3);
  expect(told).toEqual([1]);
});

test('notices that come during a read are merged into the next, and a lost one is made up for', async () => {
  const { told, reads, hear } = watched();
  const first = hear(0, 1);
  const more = [hear(1, 2), hear(2, 3), hear(5, 6)];
  await Promise.all([first, ...more]);
  expect(told).toEqual([1, 2, 3, 4, 5, 6]);
  expect(reads).toEqual([0, 1]);
});

test('nothing is read without watchers', async () => {
  const { told, reads, hear } = watched(false);
  await hear(0, 5);
  expect([told, reads]).toEqual([[], []]);
});
