import { expect, test, vi } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import { memoryKeyValue, type KeyValue } from '../../src/base/key-value.ts';
import {
  type Follower,
  type FollowParts,
  followLog,
  RetryAfter,
} from '../../src/library/integrations/follow-log.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { fakeLog } from './fake-log.ts';

function rig() {
  const clock = createFakeClock();
  const log = fakeLog(clock);
  const keyValue = memoryKeyValue();
  const onWarning = vi.fn();
  const follow = (follower: Partial<Follower>, parts: Partial<FollowParts> = {}) =>
    followLog(
      { troupe: log.troupe, keyValue, clock, random: () => 1, owner: 'p1', onWarning, ...parts },
      { name: 'relay/r', wants: () => true, since: clock.now(), deliver: async () => {}, ...follower },
    );
  return { clock, log, keyValue, onWarning, follow };
}

test('after a failure all deliveries pause, twice as long each time up to 5 minutes, and the failed event is retried first', async () => {
  const { clock, log, follow, onWarning } = rig();
  const tries: [number, string][] = [];
  let isDown = true;
  const begun = clock.now();
  const follower = follow({
    deliver: async ({ id }) => {
      tries.push([clock.now() - begun, id]);
      if (isDown) throw new Error('away');
    },
  });
  await clock.advance(1);
  log.append('a');
  await clock.advance(1);
  log.append('b');
  log.append('a');
  await clock.advance(1_300_000);
  const gaps = tries.map(([at], n) => Math.round((at - (tries[n - 1]?.[0] ?? at)) / 1_000));
  expect(gaps.slice(0, 12)).toEqual([0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
  expect(new Set(tries.map(([, id]) => id))).toEqual(new Set(['e1']));
  expect(follower.status()).toMatchObject({ behind: 2, failures: 12, lastError: 'away' });
  expect(onWarning).toHaveBeenCalledTimes(1);
  isDown = false;
  tries.length = 0;
  await clock.advance(300_000);
  expect(tries[0]?.[1]).toBe('e1');
  expect(tries.map(([, id]) => id).toSorted()).toEqual(['e1', 'e2', 'e3']);
  expect(follower.status()).toEqual({ behind: 0, failures: 0, lastError: null, retryAt: null });
  await follower.close();
});

test('a log of large events, one to a page, is delivered to its end', async () => {
  const { clock, log, follow } = rig();
  const troupe: FollowParts['troupe'] = {
    ...log.troupe,
    events: (conversation, range) => log.troupe.events(conversation, { ...range, limit: 1 }),
  };
  const sent: string[] = [];
  const follower = follow({ deliver: async ({ id }) => void sent.push(id) }, { troupe });
  for (let round = 1; round <= 3; round += 1) {
    for (let count = 0; count < 3; count += 1) log.append('a');
    await clock.advance(10_000);
    expect(sent).toEqual(log.all('a').map(({ id }) => id));
  }
  await follower.close();
});

test('a delivery under way when another conversation fails stops after its event', async () => {
  const { clock, log, follow } = rig();
  const sent: string[] = [];
  let isDown = true;
  const follower = follow({
    deliver: async ({ conversation }) => {
      await clock.sleep(100);
      if (conversation === 'a' && isDown) throw new Error('away');
      sent.push(conversation);
    },
  });
  await clock.advance(1);
  for (let n = 0; n < 20; n++) log.append('b');
  await clock.advance(250);
  log.append('a');
  await clock.advance(20_000);
  expect(sent.length).toBeLessThanOrEqual(4);
  isDown = false;
  await clock.advance(20_000);
  expect(sent.filter((each) => each === 'b').length).toBe(20);
  expect(sent.length).toBe(21);
  await follower.close();
});

test('RetryAfter sets the pause, up to an hour', async () => {
  const { clock, log, follow } = rig();
  const asked = [90_000, 86_400_000];
  const tries: number[] = [];
  const follower = follow({
    deliver: async () => {
      tries.push(clock.now());
      const ms = asked.shift();
      if (ms !== undefined) throw new RetryAfter(ms, 'later');
    },
  });
  await clock.advance(1);
  log.append('a');
  await clock.advance(4_000_000);
  expect(tries.map((at, n) => Math.floor((at - (tries[n - 1] ?? at)) / 1_000))).toEqual([0, 90, 3_600]);
  await follower.close();
});

test('several conversations are under way at once, each with one event', async () => {
  const { clock, log, follow } = rig();
  const underWay = new Map<string, number>();
  const most = { events: 0, conversations: 0 };
  const follower = follow({
    deliver: async ({ conversation }) => {
      underWay.set(conversation, (underWay.get(conversation) ?? 0) + 1);
      most.events = Math.max(most.events, ...underWay.values());
      most.conversations = Math.max(most.conversations, [...underWay.values()].filter(Boolean).length);
      await clock.sleep(100);
      underWay.set(conversation, 0);
    },
  });
  await clock.advance(1);
  for (let n = 0; n < 100; n++) log.append(`c${n % 10}`);
  await clock.advance(5_000);
  expect(follower.status().behind).toBe(0);
  expect(most).toEqual({ events: 1, conversations: 4 });
  await follower.close();
});

test('a long log is read in pages, from the start of the follower on', async () => {
  const { clock, log, follow } = rig();
  for (let n = 0; n < 20_000; n++) log.append('a', { quietly: true });
  await clock.advance(3_600_000);
  const got: Event[] = [];
  const follower = follow({ deliver: async (event) => void got.push(event) });
  await clock.advance(1);
  for (let n = 0; n < 300; n++) log.append('a');
  await follower.idle();
  expect(got.map(({ seq }) => seq)).toEqual(Array.from({ length: 300 }, (_, n) => 20_001 + n));
  expect(log.reads.events).toBeLessThan(10);
  await follower.close();
});

test('events that the follower does not care for cost no reads', async () => {
  const { clock, log, follow } = rig();
  const deliver = vi.fn(async () => {});
  const follower = follow({
    deliver,
    cares: ({ kind }) => kind === 'todos',
    wants: (id) => id !== 'not-this',
  });
  await clock.advance(1);
  for (let n = 0; n < 1_000; n++) log.append('a');
  log.append('not-this', { kind: 'todos' });
  await follower.idle();
  expect(log.reads.events).toBe(0);
  log.append('a', { kind: 'todos' });
  await follower.idle();
  expect(deliver).toHaveBeenCalledTimes(1);
  await follower.close();
});

test('an idle follower lists conversations every 20 s, and reads no event again', async () => {
  const { clock, log, follow } = rig();
  const follower = follow({});
  await clock.advance(1);
  for (let n = 0; n < 100; n++) log.append(`c${n}`);
  await follower.idle();
  const before = { ...log.reads };
  await clock.advance(100_000);
  expect(log.reads.events).toBe(before.events);
  expect(log.reads.conversations - before.conversations).toBeLessThanOrEqual(10);
  await follower.close();
});

test('two processes at once deliver each event at least once, in order, and settle on one cursor', async () => {
  const { clock, log, follow } = rig();
  const got: string[] = [];
  const keyValue = memoryKeyValue();
  // Claims that exclude no process: the worst case of clocks and stores.
  const both = { keyValue: { ...keyValue, claim: async () => true } };
  const deliver = (name: string) => async (event: Event) => {
    await clock.sleep(name === 'p1' ? 7 : 11);
    got.push(event.id);
  };
  const followers = ['p1', 'p2'].map((owner) => follow({ deliver: deliver(owner) }, { ...both, owner }));
  await clock.advance(1);
  for (let n = 0; n < 60; n++) log.append('a');
  await clock.advance(60_000);
  const firsts = [...new Set(got)];
  expect(firsts).toEqual(log.all('a').map(({ id }) => id));
  expect(JSON.parse((await keyValue.get('sent/relay/r/a')) ?? '')).toMatchObject({ seq: 60 });
  await Promise.all(followers.map((each) => each.close()));
});

test('close waits for a delivery under way and saves its cursor, and aborts one that takes too long', async () => {
  const { clock, log, keyValue, follow } = rig();
  const signals: AbortSignal[] = [];
  let takeMs = 1_000;
  const deliver = async (_: Event, signal: AbortSignal) => {
    signals.push(signal);
    await clock.sleep(takeMs, signal);
    if (signal.aborted) throw new Error('cut off');
  };
  const first = follow({ deliver, since: 0 });
  await clock.advance(1);
  log.append('a');
  log.append('a');
  await clock.advance(500);
  const closed = first.close();
  await clock.advance(5_000);
  await closed;
  expect(JSON.parse((await keyValue.get('sent/relay/r/a')) ?? '')).toMatchObject({ seq: 1 });
  takeMs = 1_000_000;
  await clock.advance(30_000);
  const second = follow({ deliver, since: 0 });
  await clock.advance(1_000);
  expect(signals.length).toBe(2);
  const closedToo = second.close();
  await clock.advance(5_000);
  await closedToo;
  expect(signals[1]?.aborted).toBe(true);
  expect(JSON.parse((await keyValue.get('sent/relay/r/a')) ?? '')).toMatchObject({ seq: 1 });
});

test('after a close one other process continues at once', async () => {
  const { clock, log, follow } = rig();
  const got: string[] = [];
  const by = (owner: string) =>
    follow({ since: 0, deliver: async ({ id }) => void got.push(`${owner} ${id}`) }, { owner });
  const first = by('p1');
  await clock.advance(1);
  log.append('a');
  await first.idle();
  await first.close();
  log.append('a');
  const others = [by('p2'), by('p3')];
  await clock.advance(10);
  expect(got).toEqual(['p1 e1', 'p2 e2']);
  await Promise.all(others.map((each) => each.close()));
});

test('an unavailable store is reported once, and no event is lost', async () => {
  const { clock, log, follow, onWarning, keyValue } = rig();
  let isAway = false;
  const away =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      if (isAway) throw new Error('the store is away');
      return call(...args);
    };
  const got: string[] = [];
  const follower = follow(
    { deliver: async ({ id }) => void got.push(id) },
    {
      keyValue: {
        get: away((key: string) => keyValue.get(key)),
        compareAndSet: away((key: string, from: string | null, to: string) =>
          keyValue.compareAndSet(key, from, to),
        ),
        claim: away((task: string, lease: Parameters<KeyValue['claim']>[1]) => keyValue.claim(task, lease)),
      },
      troupe: {
        watch: (watcher) => log.troupe.watch(watcher),
        conversations: away((limit?: number) => log.troupe.conversations(limit)),
        events: away((...args: Parameters<typeof log.troupe.events>) => log.troupe.events(...args)),
      },
    },
  );
  await clock.advance(1);
  isAway = true;
  for (let n = 0; n < 5; n++) log.append(`c${n}`);
  await clock.advance(120_000);
  expect(got).toEqual([]);
  isAway = false;
  await clock.advance(400_000);
  expect(got.toSorted()).toEqual(['e1', 'e2', 'e3', 'e4', 'e5']);
  expect(onWarning.mock.calls.length).toBeLessThanOrEqual(3);
  await follower.close();
});
