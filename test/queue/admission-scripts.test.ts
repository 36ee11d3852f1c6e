import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { enterSlot, takeToken, type CallBucket, type SlotState } from '../../src/queue/admission-rules.ts';
import { admissionScripts } from '../../src/queue/redis/redis-admission.ts';
import { suiteSeed } from '../support/engine-random.ts';
import { createConnections, needsRedis, REDIS_URL, uniquePrefix } from './connections.ts';

/**
 * Compares the Lua scripts with the rules that they repeat: random questions at random times must give the same answers and
 * the same states. Here the last argument is the time; otherwise the server's clock is used.
 */
const scripts = admissionScripts('tonumber(ARGV[#ARGV])');
const SLOT_MS = 3_000;
const START = 1_790_000_000_000;
const TENANTS = ['x', 'y', 'z', 'a.b:c@d'];
const PROVIDERS = ['p', 'q'];
const SEED = suiteSeed();
const RUNS = { numRuns: 150, seed: SEED };

const connections = createConnections();
afterAll(() => connections.end());

type Move =
  | { move: 'enter'; tenant: string; provider: string }
  | { move: 'leave' | 'renew'; pick: number }
  | { move: 'wait'; ms: number };

const tenant = fc.constantFrom(...TENANTS);
const provider = fc.constantFrom(...PROVIDERS);
const moves: fc.Arbitrary<Move[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ move: fc.constant('enter' as const), tenant, provider }) },
    { weight: 3, arbitrary: fc.record({ move: fc.constant('leave' as const), pick: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ move: fc.constant('renew' as const), pick: fc.nat() }) },
    {
      weight: 3,
      arbitrary: fc.record({ move: fc.constant('wait' as const), ms: fc.oneof(fc.nat(400), fc.nat(6_000)) }),
    },
  ),
  { minLength: 20, maxLength: 80 },
);
const cap = fc.option(fc.integer({ min: 1, max: 7 }));

describe.skipIf(REDIS_URL === '')(needsRedis(`the scripts (seed ${SEED})`), () => {
  test('admit, refuse and hold exactly as the rules do', async () => {
    const redis = await connections.ready('producer');
    let admissions = 0;
    let refusals = 0;
    await fc.assert(
      fc.asyncProperty(moves, cap, cap, async (played, tenantCap, providerCap) => {
        const prefix = uniquePrefix();
        const key = (scope: string, name: string) => `{${prefix}}:${scope}:${name}`;
        const maps = new Map<string, ReadonlyMap<string, number>>();
        const slots: { id: string; keys: string[] }[] = [];
        const of = (name: string) => maps.get(name) ?? new Map<string, number>();
        let now = START;
        let entered = 0;
        for (const each of played) {
          if (each.move === 'wait') now += each.ms;
          else if (each.move === 'enter') {
            const names = {
              tenant: key('tenant', each.tenant),
              provider: key('provider', each.provider),
              asking: key('asking', each.provider),
            };
            const id = `${each.tenant}/${++entered}`;
            const before: SlotState = {
              tenant: of(names.tenant),
              provider: of(names.provider),
              asking: of(names.asking),
            };
            const ask = { tenant: each.tenant, slot: id, slotMs: SLOT_MS, tenantCap, providerCap };
            const { admitted, state } = enterSlot(before, ask, now);
            maps.set(names.tenant, state.tenant).set(names.provider, state.provider);
            maps.set(names.asking, state.asking);
            const answer = await scripts.enter.run(
              redis,
              [names.tenant, names.provider, names.asking, key('refused', 'since'), key('refused', 'until')],
              [each.tenant, id, SLOT_MS, tenantCap ?? 0, providerCap ?? 0, 'wish', now],
            );
            expect(answer, `${id} at ${each.provider}`).toBe(admitted ? 1 : 0);
            if (admitted) admissions += 1;
            else refusals += 1;
            const keys = [
              ...(tenantCap === null ? [] : [names.tenant]),
              ...(providerCap === null ? [] : [names.provider]),
            ];
            if (admitted && keys.length > 0) slots.push({ id, keys });
          } else if (slots.length > 0) {
            const at = each.pick % slots.length;
            const slot = slots[at];
            if (!slot) continue;
            const leaves = each.move === 'leave';
            if (leaves) slots.splice(at, 1);
            for (const name of slot.keys) {
              const held = new Map(of(name));
              if (leaves) held.delete(slot.id);
              else held.set(slot.id, now + SLOT_MS);
              maps.set(name, held);
              if (leaves) await redis.zrem(name, slot.id);
            }
            const ids = slot.keys.map(() => slot.id);
            if (!leaves) await scripts.renew.run(redis, slot.keys, [SLOT_MS, ...ids, now]);
          }
          for (const [name, expected] of maps) {
            const scored = await redis.zrange(name, '0', '-1', 'WITHSCORES');
            const found = scored.flatMap((id, index) =>
              index % 2 === 0 ? [[id, Number(scored[index + 1])] as const] : [],
            );
            const live = (entries: Iterable<readonly [string, number]>) =>
              [...entries]
                .filter(([, until]) => until > now)
                .map(([id, until]) => `${id} until ${until}`)
                .toSorted();
            expect(live(found), name).toEqual(live(expected));
          }
        }
        await redis.del(...maps.keys(), key('none', 'none'));
      }),
      RUNS,
    );
    console.log(`seed ${SEED}: ${admissions} admitted, ${refusals} refused, as the rules say`);
  });

  test('give and refuse calls exactly as the rules say', async () => {
    const redis = await connections.ready('producer');
    const waits = fc.array(
      // The clock of a server may go back a little.
      fc.oneof(fc.constant(0), fc.nat(50), fc.nat(100_000), fc.integer({ min: -5_000, max: 0 })),
      { minLength: 5, maxLength: 60 },
    );
    const rates = fc.record({
      callsPerMinute: fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 1_000_000 })),
      burst: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 100_000 })),
    });
    await fc.assert(
      fc.asyncProperty(waits, rates, async (played, rate) => {
        const name = `{${uniquePrefix()}}:calls`;
        let bucket: CallBucket | null = null;
        let now = START;
        for (const ms of played) {
          now += ms;
          const expected: { waitMs: number; bucket: CallBucket } = takeToken(bucket, rate, now);
          bucket = expected.bucket;
          const answer = await scripts.takeCall.run(
            redis,
            [name, `${name}:since`, `${name}:until`],
            [rate.callsPerMinute, rate.burst, 'wish', now],
          );
          expect(answer).toBe(expected.waitMs);
          const [level, at] = await redis.hmget(name, 'level', 'at');
          expect({ level: Number(level), at: Number(at) }).toEqual(bucket);
        }
        await redis.del(name);
      }),
      RUNS,
    );
  });
});

test(`a caller that waits the given time gets a call (seed ${SEED})`, () => {
  const rate = fc.record({
    callsPerMinute: fc.integer({ min: 1, max: 1_000_000 }),
    burst: fc.integer({ min: 1, max: 50 }),
  });
  fc.assert(
    fc.property(rate, fc.array(fc.nat(1_000), { maxLength: 60 }), (given, pauses) => {
      let bucket: CallBucket | null = null;
      let now = START;
      for (const ms of pauses) {
        now += ms;
        const asked: { waitMs: number; bucket: CallBucket } = takeToken(bucket, given, now);
        bucket = asked.bucket;
        if (asked.waitMs === 0) continue;
        // Refused before the due time, granted at it.
        expect(takeToken(bucket, given, now + asked.waitMs - 1).waitMs).toBe(1);
        now += asked.waitMs;
        const again: { waitMs: number; bucket: CallBucket } = takeToken(bucket, given, now);
        expect(again.waitMs).toBe(0);
        bucket = again.bucket;
      }
    }),
    RUNS,
  );
});
