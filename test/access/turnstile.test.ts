import { expect, test } from 'vitest';
import { MOST_WAITING } from '../../src/library/access/index.ts';
import { Turnstile } from '../../src/library/access/traffic.ts';
import type { TenantId } from '../../src/events/index.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';

const [ACME, ZETA] = ['acme', 'zeta'] as TenantId[] as [TenantId, TenantId];

function startTurnstile() {
  const fake = createFakeClock();
  let turn = Promise.withResolvers<void>();
  // What waits for a turn of the event loop goes on when the test says so.
  const clock = { ...fake, sleep: (ms: number) => (ms === 0 ? turn.promise : fake.sleep(ms)) };
  const turnstile = new Turnstile(clock);
  const begun: { tenant: TenantId | null; leave: () => void }[] = [];
  const enter = (tenant: TenantId | null): void => {
    const entering = turnstile.enter(tenant);
    if (typeof entering === 'function') begun.push({ tenant, leave: entering });
    else void entering?.then((leave) => begun.push({ tenant, leave }));
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const nextTurn = () => {
    turn.resolve();
    turn = Promise.withResolvers<void>();
    return settled();
  };
  const turns = async (count: number) => {
    for (let n = 0; n < count; n++) await nextTurn();
  };
  const of = (tenant: TenantId | null) => begun.filter((each) => each.tenant === tenant);
  return { clock, turnstile, begun, enter, of, settled, turns };
}

test('while one tenant uses the process, all its requests begin at once', () => {
  const { enter, of } = startTurnstile();
  for (let n = 0; n < 100; n++) enter(ACME);
  expect(of(ACME)).toHaveLength(100);
});

test('beside another tenant, a few requests begin at once, and of a flood one at a time, in their order', async () => {
  const { enter, of, settled, turns } = startTurnstile();
  enter(ZETA);
  for (let n = 0; n < 20; n++) enter(ACME);
  expect(of(ACME)).toHaveLength(8);
  enter(ZETA);
  expect(of(ZETA)).toHaveLength(2);
  for (let n = 0; n < 7; n++) of(ACME)[n]?.leave();
  await turns(20);
  expect(of(ACME)).toHaveLength(8);
  of(ACME)[7]?.leave();
  of(ACME)[7]?.leave();
  await settled();
  expect(of(ACME)).toHaveLength(8);
  await turns(20);
  expect(of(ACME)).toHaveLength(9);
});

test.for([
  ['a tenant', ACME],
  ['unknown callers', null],
] as const)(
  'requests of %s that are answered at once do not follow each other in one turn of the event loop',
  async ([, flooding]) => {
    const { begun, enter, of, turns } = startTurnstile();
    const answerAll = () => {
      for (const each of begun) each.leave();
    };
    enter(ZETA);
    // Each ends before the next one arrives, and all arrive in one turn.
    for (let n = 0; n < 64; n++) {
      enter(flooding);
      answerAll();
    }
    expect(of(flooding)).toHaveLength(8);
    // Another tenant's requests begin between any two.
    for (let n = 9; of(flooding).length < 64 && n < 500; n++) {
      const before = of(flooding).length;
      await turns(1);
      answerAll();
      enter(ZETA);
      expect(of(flooding).length - before).toBeLessThanOrEqual(1);
      expect(begun.at(-1)?.tenant).toBe(ZETA);
    }
    expect(of(flooding)).toHaveLength(64);
  },
);

test('unknown callers do not make the only tenant wait', () => {
  const { enter, of } = startTurnstile();
  enter(ACME);
  enter(null);
  for (let n = 0; n < 100; n++) enter(ACME);
  expect(of(ACME)).toHaveLength(101);
});

test('a request that takes long no longer holds up those behind it', async () => {
  const { clock, enter, of, turns } = startTurnstile();
  enter(ZETA);
  for (let n = 0; n < 20; n++) enter(ACME);
  expect(of(ACME)).toHaveLength(8);
  await turns(1);
  await clock.advance(1_000);
  await turns(20);
  // The first ones go on, and another one has begun.
  expect(of(ACME)).toHaveLength(9);
});

test('a tenant has a bounded number of waiting requests, and another one still begins', () => {
  const { turnstile, enter, of } = startTurnstile();
  enter(ZETA);
  for (let n = 0; n < MOST_WAITING + 8; n++) enter(ACME);
  expect(turnstile.enter(ACME)).toBeNull();
  enter(ZETA);
  expect(of(ZETA)).toHaveLength(2);
});
