import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import { memoryKeyValue, type KeyValue } from '../../src/base/key-value.ts';
import { type FollowParts, followLog, type LogFollower } from '../../src/library/integrations/follow-log.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { fakeLog } from './fake-log.ts';

type Step =
  | { do: 'append'; conversation: string; count: number; quietly: boolean }
  | { do: 'pass'; ms: number }
  | { do: 'fail'; times: number }
  | { do: 'delete'; conversation: string }
  | { do: 'crash' }
  | { do: 'close' };

const conversation = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('append' as const),
      conversation,
      count: fc.nat(60),
      quietly: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.constantFrom(0, 1, 50, 300, 5_000, 25_000, 70_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('fail' as const), times: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), conversation }) },
  { weight: 2, arbitrary: fc.constant({ do: 'crash' as const }) },
  { weight: 1, arbitrary: fc.constant({ do: 'close' as const }) },
);

/** A port of a process that can be killed: afterwards no call takes effect and none is answered. */
function mortal<T extends object>(port: T, life: { isOver: boolean }): T {
  return new Proxy(port, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (life.isOver) return new Promise(() => {});
        const answer: unknown = Reflect.apply(value, target, args);
        if (!(answer instanceof Promise)) return answer;
        return answer.then((got: unknown) => (life.isOver ? new Promise(() => {}) : got));
      };
    },
  });
}

test('despite failures, crashes and lost notices, each event is delivered in order, and twice only after a crash', async () => {
  let delivered = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), fc.nat(), async (steps, seed) => {
      const clock = createFakeClock();
      const log = fakeLog(clock);
      const keyValue: KeyValue = memoryKeyValue();
      for (const id of ['a', 'b', 'c']) for (let n = 0; n < 30; n++) log.append(id);
      await clock.advance(1_000);
      const since = clock.now();
      const sent = new Map<string, number>();
      const problems: string[] = [];
      let failing = 0;
      let crashes = 0;
      let random = seed;

      async function deliver(life: { isOver: boolean }, event: Event): Promise<void> {
        random = (random * 1_103_515_245 + 12_345) % 2_147_483_648;
        if (random % 3 > 0) await clock.sleep(random % 40);
        if (life.isOver) return new Promise(() => {});
        if (failing > 0) {
          failing -= 1;
          throw new Error('the other side is away');
        }
        if (event.at < since) problems.push(`${event.id} is from before`);
        const events = log.all(event.conversation);
        // After a deletion the other events of the conversation are missing.
        const isThere = events[event.seq - 1]?.id === event.id;
        const missing = events.find(({ id, at, seq }) => at >= since && seq < event.seq && !sent.has(id));
        if (isThere && missing) problems.push(`${event.id} came before ${missing.id}`);
        sent.set(event.id, (sent.get(event.id) ?? 0) + 1);
      }

      function begin(): { follower: LogFollower; life: { isOver: boolean } } {
        const life = { isOver: false };
        const parts: FollowParts = {
          troupe: mortal(log.troupe, life),
          keyValue: mortal(keyValue, life),
          clock,
          random: () => 0.5,
          owner: `p${crashes}`,
          onWarning: () => {},
        };
        const wants = () => true;
        const follower = followLog(parts, {
          name: 'f',
          since,
          wants,
          deliver: (event) => deliver(life, event),
        });
        return { follower, life };
      }

      let running = begin();
      for (const each of steps) {
        if (each.do === 'append') for (let n = 0; n < each.count; n++) log.append(each.conversation, each);
        if (each.do === 'pass') await clock.advance(each.ms);
        if (each.do === 'fail') failing += each.times;
        if (each.do === 'delete') log.delete(each.conversation);
        if (each.do === 'crash') {
          running.life.isOver = true;
          crashes += 1;
          running = begin();
        }
        if (each.do === 'close') {
          const closed = running.follower.close();
          await clock.advance(10_000);
          await closed;
          running = begin();
        }
      }
      failing = 0;
      // Time for a claim, the longest pause and a listing.
      await clock.advance(60_000 + 60_000 + 60_000);
      await running.follower.idle();
      expect(running.follower.status()).toEqual({ behind: 0, failures: 0, lastError: null, retryAt: null });
      const closed = running.follower.close();
      await clock.advance(10_000);
      await closed;
      for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) {
        for (const event of log.all(id)) {
          if (event.at >= since && !sent.has(event.id)) problems.push(`${event.id} was not delivered`);
        }
      }
      if (crashes === 0)
        for (const [id, times] of sent) if (times > 1) problems.push(`${id} came ${times} times`);
      expect(problems).toEqual([]);
      delivered += sent.size;
    }),
    { numRuns: 200 },
  );
  expect(delivered).toBeGreaterThan(1_000);
});
