import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ActorAddress, type ConversationId } from '../../src/events/index.ts';
import { createFairQueue, familyOf } from '../../src/queue/fair-share.ts';
import { createInProcessRouter } from '../../src/queue/in-process.ts';
import type { Router } from '../../src/queue/router.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';

const MANY = 200_000;

function address(tenant: string, conversation: string): ActorAddress {
  return ActorAddress.parse({ tenant, conversation, agent: 'bo' });
}

/** A thread of a conversation; threads may be nested. */
function thread(conversation: string, task: number): string {
  return `${conversation}.d-${task.toString(16).padStart(12, '0')}`;
}

/** Conversations in the order of their starts. */
async function serve(router: Router, until: number): Promise<string[]> {
  const order: string[] = [];
  const enough = Promise.withResolvers<void>();
  router.start(
    async ({ tenant, conversation }) => {
      order.push(`${tenant}/${conversation}`);
      if (order.length >= until) enough.resolve();
      return { kind: 'done' };
    },
    {
      concurrency: 1,
      onError(error) {
        throw error;
      },
    },
  );
  await enough.promise;
  return order;
}

describe('200,000 wakes of the threads of one conversation', () => {
  test('delay another tenant, or another conversation of the tenant, by one turn at most', async () => {
    const router = createInProcessRouter({ clock: createFakeClock(), mostWaiting: MANY + 1 });
    for (let task = 0; task < MANY; task += 1) await router.wake(address('acme', thread('bomb', task)));
    await router.wake(address('acme', 'other'));
    await router.wake(address('zeta', 'talk'));
    const order = await serve(router, 8);
    expect(order.indexOf('zeta/talk')).toBeLessThan(3);
    expect(order.indexOf('acme/other')).toBeLessThan(4);
    await router.close();
  });

  test('are bounded: the rest is left to the sweeper, and no wake of another tenant is dropped', async () => {
    const router = createInProcessRouter({ clock: createFakeClock(), mostWaiting: 1_000 });
    for (let task = 0; task < 5_000; task += 1) await router.wake(address('acme', thread('bomb', task)));
    await router.wake(address('zeta', 'talk'));
    expect(await router.depth()).toMatchObject({ waiting: 1_001 });
    expect(await router.backlog('acme' as ActorAddress['tenant'])).toBe(1_000);
    const order = await serve(router, 1_001);
    // There is room again now.
    await router.wake(address('acme', thread('bomb', 4_999)));
    await Promise.resolve();
    expect(order.at(-1)).toBe(`acme/${thread('bomb', 4_999)}`);
    await router.close();
  });
});

test('a thread belongs to the family of its conversation, however deep it is; other ids are families', () => {
  const of = (name: string) => familyOf(name as ConversationId);
  expect(of(thread('room', 1))).toBe('room');
  expect(of(thread(thread('room.a', 1), 2))).toBe('room.a');
  for (const name of ['room', 'room.d-1', 'd-0123456789ab', 'room.q-0123456789ab'])
    expect(of(name)).toBe(name);
});

test('each family keeps its order, and a tenant waits for one turn of each other tenant at most', () => {
  const act = fc.oneof(
    fc.record({ tenant: fc.nat(3), family: fc.nat(3) }),
    fc.constant(null),
    fc.constant(null),
  );
  fc.assert(
    fc.property(fc.array(act, { maxLength: 200 }), (acts) => {
      const queue = createFairQueue<{ key: string; tenant: number; number: number }>();
      const waiting = new Map<string, number[]>();
      /** By tenant: the starts of others since it began to wait or was last served. */
      const passed = new Map<number, Map<number, number>>();
      let size = 0;
      for (const [number, what] of acts.entries()) {
        if (what) {
          const key = `${what.tenant}/${what.family}`;
          queue.push({ key, tenant: what.tenant, number }, [`${what.tenant}`, key]);
          waiting.set(key, [...(waiting.get(key) ?? []), number]);
          if (!passed.has(what.tenant)) passed.set(what.tenant, new Map());
          size += 1;
        } else {
          const item = queue.shift();
          expect(item === undefined).toBe(size === 0);
          if (!item) continue;
          size -= 1;
          const own = waiting.get(item.key) ?? [];
          expect(own.shift()).toBe(item.number);
          passed.delete(item.tenant);
          if (queue.sizeOf(`${item.tenant}`) > 0) passed.set(item.tenant, new Map());
          for (const [tenant, others] of passed) {
            if (tenant === item.tenant) continue;
            others.set(item.tenant, (others.get(item.tenant) ?? 0) + 1);
            expect(others.get(item.tenant)).toBeLessThanOrEqual(1);
          }
        }
        expect(queue.size()).toBe(size);
      }
    }),
  );
});
