import { Redis } from 'ioredis';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { TroupeError } from '../../src/base/errors.ts';
import { ActorAddress } from '../../src/events/index.ts';
import type { Admission, AdmissionCaps, Entry } from '../../src/queue/admission.ts';
import {
  createAdmissionHub,
  createInProcessAdmission,
  createOpenAdmission,
} from '../../src/queue/in-process-admission.ts';
import { connectRedis, endConnection } from '../../src/queue/redis/connect-redis.ts';
import { createRedisAdmission } from '../../src/queue/redis/redis-admission.ts';
import { admissionConformance } from '../../packages/testing/src/admission-conformance.ts';
import type { AdmissionOpening } from '../../packages/testing/src/admission-conformance.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { keysOf } from '../support/redis-keys.ts';
import { createConnections, needsRedis, REDIS_URL, uniquePrefix, until } from './connections.ts';
import { redisServerPath, startOwnRedis } from './own-redis.ts';

const X = address('x');
const ONE_AT_A_TIME: AdmissionCaps = { turnsPerTenant: 1, providers: { p: { turns: 1, callsPerMinute: 1 } } };

function address(tenant: string): ActorAddress {
  return ActorAddress.parse({ tenant, conversation: 'c1', agent: 'a' });
}

async function admitted(entering: Promise<Entry>): Promise<Extract<Entry, { kind: 'admitted' }>> {
  const entry = await entering;
  if (entry.kind !== 'admitted') throw new Error('refused');
  return entry;
}

describe('the in-process admission keeps the contract', () => {
  const open = async ({ caps, members, slotMs }: AdmissionOpening) => {
    const hub = createAdmissionHub({ caps, clock: systemClock, slotMs });
    const lives = new Map<Admission, AbortController>();
    for (let count = 0; count < members; count += 1) {
      const life = new AbortController();
      lives.set(hub.join(life.signal), life);
    }
    return { members: [...lives.keys()], kill: async (member: Admission) => lives.get(member)?.abort() };
  };
  for (const each of admissionConformance(open)) test(`${each.group} ${each.name}`, () => each.run());
});

describe('the in-process admission', () => {
  test('never exceeds the rate of a provider, over any period', async () => {
    const clock = createFakeClock();
    const caps = { providers: { p: { callsPerMinute: 90, burst: 7 } } };
    const admission = createInProcessAdmission({ caps, clock });
    const calls: number[] = [];
    let asked = 0;
    while (clock.monotonic() < 600_000) {
      asked += 1;
      const wait = await admission.takeCall(X, 'p');
      if (wait === 0) calls.push(clock.monotonic());
      // An occasional pause, in which the bucket fills.
      else await clock.advance(asked % 50 === 0 ? 20_000 : wait);
    }
    for (const [first, from] of calls.entries()) {
      for (let last = first; last < calls.length; last += 1) {
        const allowed = 7 + (((calls[last] ?? from) - from) * 90) / 60_000;
        expect(last - first + 1, `calls from ${from} to ${calls[last]}`).toBeLessThanOrEqual(allowed);
      }
    }
    expect(calls.length).toBeGreaterThan(400);
  });

  test('admits a tenant with little work, however many actors of another wait', async () => {
    const clock = createFakeClock();
    const caps = { providers: { p: { turns: 4 } } };
    const admission = createInProcessAdmission({ caps, clock });
    const TURN_MS = 1_000;
    const waits = new Map<string, number[]>([
      ['greedy', []],
      ['modest', []],
    ]);
    let over = false;
    async function work(tenant: string, turns: number): Promise<void> {
      let asked = clock.monotonic();
      for (let turn = 0; turn < turns && !over;) {
        const entry = await admission.enter(address(tenant), 'p');
        if (entry.kind === 'full') {
          await clock.sleep(entry.retryInMs);
          continue;
        }
        waits.get(tenant)?.push(clock.monotonic() - asked);
        await clock.sleep(TURN_MS);
        await entry.leave();
        asked = clock.monotonic();
        turn += 1;
      }
    }
    const greedy = Array.from({ length: 40 }, () => work('greedy', Infinity));
    await clock.advance(5_000);
    const before = waits.get('greedy')?.length ?? 0;
    expect(before).toBeGreaterThan(12);
    const modest = Promise.all([work('modest', 10), work('modest', 10)]).then(() => (over = true));
    for (let seconds = 0; seconds < 60 && !over; seconds += 1) await clock.advance(1_000);
    await modest;
    await clock.advance(2_000);
    await Promise.all(greedy);
    // A slot becomes free within a turn, and stays free until the waiting tenant asks again.
    for (const wait of waits.get('modest') ?? []) expect(wait).toBeLessThanOrEqual(TURN_MS + 2 * 400);
    expect(waits.get('modest')).toHaveLength(20);
    expect((waits.get('greedy')?.length ?? 0) - before).toBeGreaterThan(20);
  });

  test('gives refused callers different times to ask again', async () => {
    const caps = { turnsPerTenant: 1 };
    const options = { caps, clock: createFakeClock() };
    for (const [random, retryInMs] of [
      [0, 100],
      [0.5, 250],
      [0.999, 399],
    ] as const) {
      const admission = createInProcessAdmission({ ...options, random: () => random });
      await admitted(admission.enter(X, 'p'));
      expect(await admission.enter(X, 'p')).toEqual({ kind: 'full', retryInMs });
    }
  });
});

test('the open admission admits all callers', async () => {
  const admission = createOpenAdmission();
  for (let count = 0; count < 100; count += 1) await (await admitted(admission.enter(X, 'p'))).leave();
  expect(await admission.takeCall(X, 'p')).toBe(0);
  await admission.close();
});

test.each<[string, AdmissionCaps]>([
  ['turnsPerTenant', { turnsPerTenant: 0 }],
  ['providers.p.turns', { providers: { p: { turns: 1.5 } } }],
  ['providers.p.callsPerMinute', { providers: { p: { callsPerMinute: -1 } } }],
  ['providers.p.burst', { providers: { p: { callsPerMinute: 1, burst: Number.NaN } } }],
])('a cap that is not a whole number from 1 is refused by name: %s', (name, caps) => {
  const open = () => createInProcessAdmission({ caps, clock: createFakeClock() });
  expect(open).toThrow(TroupeError);
  expect(open).toThrow(`the cap ${name} must be a whole number from 1`);
});

const connections = createConnections();
const admissions: Admission[] = [];
afterEach(async () => {
  await Promise.all(admissions.splice(0).map((each) => each.close()));
  connections.end();
});

describe.skipIf(REDIS_URL === '')(needsRedis('the Redis admission keeps the contract'), () => {
  const open = async ({ caps, members, slotMs }: AdmissionOpening) => {
    const prefix = uniquePrefix();
    const lines = new Map<Admission, Awaited<ReturnType<typeof connections.ready>>>();
    // Admits without asking once Redis is late: of no concern to the contract, and a busy machine is late.
    const patient = { onWarning: () => {}, answerMs: 60_000 };
    for (let count = 0; count < members; count += 1) {
      const redis = await connections.ready('producer');
      lines.set(createRedisAdmission({ redis, prefix, caps, slotMs, ...patient }), redis);
    }
    async function kill(member: Admission): Promise<void> {
      const redis = lines.get(member);
      if (redis) endConnection(redis);
    }
    return { members: [...lines.keys()], kill };
  };
  for (const each of admissionConformance(open)) test(`${each.group} ${each.name}`, () => each.run());
});

test('the Redis admission sends no command without a cap', async () => {
  // Nothing listens there, so a command would cause a warning.
  const redis = connectRedis('redis://127.0.0.1:1', { profile: 'producer', onWarning: () => {} });
  const warnings: unknown[] = [];
  const caps = { providers: { p: { turns: 1, callsPerMinute: 1 }, q: {} } };
  const onWarning = (warning: unknown) => warnings.push(warning);
  const admission = createRedisAdmission({ redis, prefix: 'p', caps, onWarning });
  for (const provider of ['q', 'r', 'constructor']) {
    await (await admitted(admission.enter(X, provider))).leave();
    expect(await admission.takeCall(X, provider)).toBe(0);
  }
  expect(warnings).toEqual([]);
  await admission.enter(X, 'p');
  expect(warnings).toHaveLength(1);
  await admission.close();
  endConnection(redis);
});

describe.skipIf(REDIS_URL === '')(needsRedis('the Redis admission'), () => {
  test('counts its slots again after Redis lost its data', async () => {
    const prefix = uniquePrefix();
    const redis = await connections.ready('producer');
    const open = (slotMs: number) => {
      const admission = createRedisAdmission({
        redis,
        prefix,
        caps: ONE_AT_A_TIME,
        slotMs,
        onWarning: () => {},
      });
      admissions.push(admission);
      return admission;
    };
    const [holder, other] = [open(90), open(90)];
    const slot = await admitted(holder.enter(X, 'p'));
    const keys = await keysOf(redis, `{${prefix}}:*`);
    expect(keys.toSorted()).toEqual(
      ['asking:p', 'slots:provider:p', 'slots:tenant:x'].map((key) => `{${prefix}}:${key}`),
    );
    await redis.del(...keys);
    await until(async () => (await redis.exists(`{${prefix}}:slots:provider:p`)) === 1);
    expect((await other.enter(X, 'p')).kind).toBe('full');
    await slot.leave();
    expect((await other.enter(X, 'p')).kind).toBe('admitted');
  });

  test('leaves no key that never expires', async () => {
    const prefix = uniquePrefix();
    const redis = await connections.ready('producer');
    const admission = createRedisAdmission({ redis, prefix, caps: ONE_AT_A_TIME, onWarning: () => {} });
    admissions.push(admission);
    await admission.enter(X, 'p');
    await admission.enter(X, 'p');
    await admission.takeCall(X, 'p');
    const keys = await keysOf(redis, `{${prefix}}:*`);
    expect(keys.length).toBeGreaterThan(2);
    for (const key of keys) expect(await redis.pttl(key), key).toBeGreaterThan(0);
  });
});

const OWN = redisServerPath();

describe.skipIf(OWN === null)(
  needsRedis('the Redis admission when Redis is unavailable', OWN !== null),
  () => {
    test('admits all callers, warns once, and counts them when Redis is back', async () => {
      const server = await startOwnRedis(onTestFinished);
      const own = createConnections(server.url);
      const warnings: string[] = [];
      const redis = await own.ready('producer');
      const admission = createRedisAdmission({
        redis,
        prefix: 'p',
        caps: ONE_AT_A_TIME,
        slotMs: 150,
        onWarning: (warning) => warnings.push(String(warning)),
      });
      onTestFinished(async () => {
        await admission.close();
        own.end();
      });
      const first = await admitted(admission.enter(X, 'p'));
      expect((await admission.enter(X, 'p')).kind).toBe('full');

      await server.kill();
      const meanwhile = await Promise.all(
        Array.from({ length: 20 }, () => admitted(admission.enter(X, 'p'))),
      );
      expect(await admission.takeCall(X, 'p')).toBe(0);
      expect(await admission.takeCall(X, 'p')).toBe(0);
      await first.leave();
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toContain('Redis is unavailable');

      await server.start();
      await until(() => warnings.length === 2);
      expect(warnings[1]).toContain('Redis is back');
      await until(async () => (await redis.zcard('{p}:slots:provider:p')) === 20);
      expect((await admission.enter(X, 'p')).kind).toBe('full');
      await Promise.all(meanwhile.map((each) => each.leave()));
      expect((await admission.enter(X, 'p')).kind).toBe('admitted');
      expect((await admission.enter(X, 'p')).kind).toBe('full');
    });

    test('waits no longer than `answerMs` for a server that does not answer', async () => {
      const server = await startOwnRedis(onTestFinished);
      // Its commands wait for ever.
      const redis = new Redis(server.url);
      await redis.ping();
      const warnings: string[] = [];
      const admission = createRedisAdmission({
        redis,
        prefix: 'p',
        caps: ONE_AT_A_TIME,
        slotMs: 60_000,
        answerMs: 250,
        onWarning: (warning) => warnings.push(String(warning)),
      });
      onTestFinished(async () => {
        await admission.close();
        redis.disconnect();
      });
      server.pause();
      const slot = await admitted(admission.enter(X, 'p'));
      await slot.leave();
      server.resume();
      await until(async () => (await admission.takeCall(X, 'p')) > 0);
      await until(async () => (await admission.enter(X, 'p')).kind === 'admitted');
      expect((await admission.enter(X, 'p')).kind).toBe('full');
      expect(warnings.filter((each) => each.includes('Redis is unavailable'))).toHaveLength(1);
      expect(warnings.filter((each) => each.includes('Redis is back'))).toHaveLength(1);
    });
  },
);
