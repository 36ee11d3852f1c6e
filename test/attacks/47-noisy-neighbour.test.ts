import { expect } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { attack } from './attack.ts';
import { ACME, ANA, openStage, withKey, ZETA } from './stage.ts';

const CONNECTIONS = 64;
/** Requests of a tenant that may be at work beside those of another. */
const AT_ONCE = 1;
/** Time after which a request no longer counts as at work, ms. It never comes here. */
const LONG_MS = 1_000;

/** Holds the messages of a tenant while they are being stored. */
function holding() {
  const held = {
    running: 0,
    open: Promise.withResolvers<void>(),
    full: Promise.withResolvers<void>(),
    most: 0,
  };
  const wrap = (troupe: Troupe): Troupe => ({
    ...troupe,
    forTenant(tenant) {
      const of = troupe.forTenant(tenant);
      if (tenant !== ACME) return of;
      return {
        ...of,
        async send(...given) {
          held.running += 1;
          if (held.running === held.most) held.full.resolve();
          await held.open.promise;
          held.running -= 1;
          return of.send(...given);
        },
      };
    },
  });
  const hold = (most: number) => {
    held.most = most;
    held.open = Promise.withResolvers();
    held.full = Promise.withResolvers();
  };
  return { held, hold, wrap };
}

attack(47, 'requests from 64 connections of one tenant stand in a line of their own', async (refused) => {
  const { held, hold, wrap } = holding();
  const sleep: Clock['sleep'] = (ms, signal) =>
    ms === LONG_MS ? new Promise(() => {}) : systemClock.sleep(ms, signal);
  await using stage = await openStage({
    guarded: true,
    app: {
      traffic: { requestsPerSecond: 100_000, messagesPerSecond: 100_000 },
      clock: { ...systemClock, sleep, monotonic: () => 0 },
    },
    wrap,
  });
  const zeta = await withKey(stage, ZETA);
  const keys = await Promise.all(Array.from({ length: 8 }, () => withKey(stage, ACME)));
  const say = async (ask: typeof zeta, conversation: string) => {
    const body = { author: ANA, content: 'a word' };
    return (await ask(`/api/conversations/${conversation}/events`, { body })).status;
  };
  const flood = () => Array.from({ length: CONNECTIONS }, (_, n) => say(keys[n % keys.length]!, `n${n}`));

  // Whoever uses the process alone is not slowed down.
  hold(CONNECTIONS);
  const alone = flood();
  await held.full.promise;
  held.open.resolve();
  expect(new Set(await Promise.all(alone))).toEqual(new Set([201]));

  // Another tenant comes, and is answered while all connections of the first one wait.
  expect(await say(zeta, 'z')).toBe(201);
  hold(AT_ONCE);
  const beside = flood();
  await held.full.promise;
  for (const path of ['/api/openapi.json', '/api/conversations', '/api/whoami']) {
    expect((await zeta(path)).status).toBe(200);
    expect(await say(zeta, 'z')).toBe(201);
    expect(held.running).toBe(AT_ONCE);
  }
  refused(`${AT_ONCE} at work, the others wait`);
  held.open.resolve();
  expect(new Set(await Promise.all(beside))).toEqual(new Set([201]));
});
