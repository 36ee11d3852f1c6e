import { expect, test } from 'vitest';
import { MOST_WAITING } from '../../src/access/index.ts';
import { Turnstile } from '../../src/access/turnstile.ts';
import type { TenantId } from '../../src/events/index.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const [ACME, ZETA] = ['acme', 'zeta'] as TenantId[] as [TenantId, TenantId];

function startTurnstile() {
  const clock = createFakeClock();
  const turnstile = new Turnstile(clock);
  const begun: { tenant: TenantId; leave: () => void }[] = [];
  const enter = (tenant: TenantId): void => {
    const entering = turnstile.enter(tenant);
    if (typeof entering === 'function') begun.push({ tenant, leave: entering });
    else void entering?.then((leave) => begun.push({ tenant, leave }));
  };
  const settled = () => Promise.resolve().then(() => Promise.resolve());
  const of = (tenant: TenantId) => begun.filter((each) => each.tenant === tenant);
  return { clock, turnstile, enter, of, settled };
}

test('while one tenant uses the process, all its requests begin at once', () => {
  const { enter, of } = startTurnstile();
  for (let n = 0; n < 100; n++) enter(ACME);
  expect(of(ACME)).toHaveLength(100);
});

test('beside another tenant, a few requests begin at once, and of a flood one at a time, in their order', async () => {
  const { enter, of, settled } = startTurnstile();
  enter(ZETA);
  for (let n = 0; n < 20; n++) enter(ACME);
  expect(of(ACME)).toHaveLength(8);
  enter(ZETA);
  expect(of(ZETA)).toHaveLength(2);
  for (let n = 0; n < 7; n++) of(ACME)[n]?.leave();
  await settled();
  expect(of(ACME)).toHaveLength(8);
  of(ACME)[7]?.leave();
  of(ACME)[7]?.leave();
  await settled();
  expect(of(ACME)).toHaveLength(9);
});

test('a request that takes long no longer holds up those behind it', async () => {
  const { clock, enter, of, settled } = startTurnstile();
  enter(ZETA);
  for (let n = 0; n < 20; n++) enter(ACME);
  expect(of(ACME)).toHaveLength(8);
  await clock.advance(1_000);
  await settled();
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
