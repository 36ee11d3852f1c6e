import { expect, test } from 'vitest';
import type { EventDraft, TenantId } from '../../src/events/index.ts';
import { createPendingCount } from '../../src/actors/actor/engine-deps.ts';
import { createPendingGuard } from '../../src/library/facade/send-message.ts';
import type { ConversationKey } from '../../src/store/store.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';

/** A guard that allows three waiting messages, over a queue with the given number. */
function stage(waits: (tenant: TenantId) => Promise<number>) {
  const asked: string[] = [];
  const stored = new Set<string>();
  const clock = createFakeClock();
  const router = {
    backlog: (tenant: TenantId) => {
      asked.push(tenant);
      return waits(tenant);
    },
  };
  const refuse = createPendingGuard({
    pending: createPendingCount({ router, clock, limit: 3 }),
    store: { readById: async (_, id) => (stored.has(id) ? ({ id } as never) : null) },
  });
  function say(tenant: string, { id = 'e1', to = ['echo'] }: { id?: string; to?: string[] } = {}) {
    return refuse({ tenant, conversation: 'c1' } as ConversationKey, { id, to } as EventDraft);
  }
  return { asked, stored, clock, say };
}

const BUSY = { code: 'tenant_busy', data: { waiting: 3, limit: 3, retryAfterMs: 1_000 } };

test('while the queue is unavailable nothing is refused, and afterwards the limit applies again', async () => {
  let isDown = true;
  const { say, clock } = stage(async () => {
    if (isDown) throw new Error('no connection to the queue');
    return 3;
  });
  await say('acme');
  isDown = false;
  await clock.advance(250);
  await expect(say('acme')).rejects.toMatchObject(BUSY);
});

test('the queue is asked once in 250 ms per tenant, also by many callers at once', async () => {
  const { say, asked, clock } = stage(async () => 2);
  await Promise.all([say('acme'), say('acme'), say('zeta'), say('acme')]);
  await clock.advance(249);
  await say('acme');
  expect(asked).toEqual(['acme', 'zeta']);
  await clock.advance(1);
  await Promise.all([say('acme'), say('acme')]);
  expect(asked).toEqual(['acme', 'zeta', 'acme']);
});

test('each tenant is counted separately, up to its last free place', async () => {
  const waiting: Record<string, number> = { acme: 3, zeta: 2 };
  const { say } = stage(async (tenant) => waiting[tenant] ?? 0);
  await say('zeta');
  await expect(say('acme')).rejects.toMatchObject(BUSY);
  await say('zeta');
});

test('an already accepted message is answered as stored, and messages that wake no agent are not counted', async () => {
  const { say, stored, asked } = stage(async () => 3);
  await say('acme', { to: [] });
  expect(asked).toEqual([]);
  stored.add('first');
  await say('acme', { id: 'first' });
  await expect(say('acme', { id: 'second' })).rejects.toMatchObject(BUSY);
});

test('counts are kept for at most a thousand tenants', async () => {
  const { say, asked } = stage(async () => 0);
  for (let n = 0; n < 1_000; n++) await say(`t${n}`);
  await say('t0');
  expect(asked).toHaveLength(1_000);
  await say('one-more');
  await say('t0');
  expect(asked.slice(1_000)).toEqual(['one-more', 't0']);
});
