import type { Clock } from '../../src/base/clock.ts';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LOCAL, type Principal } from '../../src/library/access/index.ts';
import { Traffic } from '../../src/library/access/traffic.ts';
import type { Author, TenantId } from '../../src/events/index.ts';
import { KeyedBuckets, TokenBucket } from '../../src/base/token-bucket.ts';

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };

function caller(id: string, tenant = 'acme'): Principal {
  return { ...LOCAL, id: `key:${id}`, tenant: tenant as TenantId };
}

function stopped(): Pick<Clock, 'monotonic' | 'sleep'> & { at: number } {
  const clock = { at: 0, monotonic: () => clock.at, sleep: () => new Promise<void>(() => {}) };
  return clock;
}

test('in any window a bucket gives at most its burst and its rate, and says when to try again', () => {
  const pauses = fc.array(fc.integer({ min: 0, max: 3_000 }), { maxLength: 200 });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 1, max: 100 }),
      pauses,
      (rate, burst, gaps) => {
        const clock = stopped();
        const bucket = new TokenBucket({ perSecond: rate, burst, clock });
        const taken: number[] = [];
        for (const gap of gaps) {
          clock.at += gap;
          const wait = bucket.take();
          if (wait === 0) taken.push(clock.at);
          else {
            clock.at += wait;
            expect(bucket.take()).toBe(0);
            taken.push(clock.at);
          }
        }
        for (const [index, from] of taken.entries()) {
          const within = taken.slice(index).filter((at) => at <= from + 1_000).length;
          expect(within).toBeLessThanOrEqual(burst + rate + 1);
        }
      },
    ),
  );
});

test('beyond the limit of keys only the least recently used one starts with a full bucket', () => {
  const clock = stopped();
  const buckets = new KeyedBuckets({ perSecond: 1, burst: 1, clock }, 2);
  expect([buckets.take('a'), buckets.take('b')]).toEqual([0, 0]);
  expect(buckets.take('a')).toBeGreaterThan(0);
  expect(buckets.take('c')).toBe(0);
  expect(buckets.take('a')).toBeGreaterThan(0);
  expect(buckets.take('b')).toBe(0);
});

test('a caller above its rate gets the time to try again, and others are not affected', () => {
  const clock = stopped();
  const traffic = new Traffic({ requestsPerSecond: 10 }, clock);
  for (let n = 0; n < 30; n++) expect(traffic.request(caller('a'))).toBe(0);
  expect(traffic.request(caller('a'))).toBe(100);
  expect(traffic.request(caller('b'))).toBe(0);
  expect(traffic.request(caller('a', 'zeta'))).toBe(0);
  clock.at += 100;
  expect(traffic.request(caller('a'))).toBe(0);
});

test('the rate of an author covers all keys, and tenants are separate', () => {
  const traffic = new Traffic({ messagesPerSecond: 1 }, stopped());
  const [acme, zeta] = ['acme' as TenantId, 'zeta' as TenantId];
  for (let n = 0; n < 5; n++) expect(traffic.message(caller(`k${n}`), acme, ANA)).toBe(0);
  expect(traffic.message(caller('k9'), acme, ANA)).toBeGreaterThan(0);
  expect(traffic.message(caller('k9', 'zeta'), zeta, ANA)).toBe(0);
  expect(traffic.message(caller('k9'), acme, { ...ANA, id: 'ben' })).toBe(0);
});

test('streams are counted until they end, once each', () => {
  const traffic = new Traffic({ streams: 2, tenantStreams: 3, allStreams: 3 }, stopped());
  const open = (id: string) => {
    const stream = traffic.openStream(caller(id));
    return 'end' in stream ? stream.end : stream.full;
  };
  const first = open('a');
  expect(typeof open('a')).toBe('function');
  expect(open('a')).toBe('caller');
  expect(typeof open('b')).toBe('function');
  expect(open('b')).toBe('process');
  if (typeof first === 'function') for (let n = 0; n < 3; n++) first();
  expect(typeof open('b')).toBe('function');
  expect(open('c')).toBe('process');
});

test('a tenant with many keys may open half of all streams', () => {
  const traffic = new Traffic({ allStreams: 6 }, stopped());
  const open = (id: string, tenant: string) => traffic.openStream(caller(id, tenant));
  const first = open('k0', 'acme');
  expect([open('k1', 'acme'), open('k2', 'acme')].every((each) => 'end' in each)).toBe(true);
  expect(open('k3', 'acme')).toEqual({ full: 'tenant', limit: 3 });
  expect('end' in open('z', 'zeta')).toBe(true);
  if ('end' in first) for (let n = 0; n < 2; n++) first.end();
  expect('end' in open('k3', 'acme')).toBe(true);
  expect(open('k4', 'acme')).toEqual({ full: 'tenant', limit: 3 });
  const house = [1, 2].map((n) => open(`h${n}`, 'default'));
  expect(house.every((each) => 'end' in each)).toBe(true);
  expect(open('h3', 'default')).toEqual({ full: 'process', limit: 6 });
});

test('the user of this machine has no rate limits', () => {
  const traffic = new Traffic({ requestsPerSecond: 1, messagesPerSecond: 1, streams: 1 }, stopped());
  for (let n = 0; n < 100; n++)
    expect(traffic.request(LOCAL) + traffic.message(LOCAL, LOCAL.tenant, ANA)).toBe(0);
  expect([traffic.openStream(LOCAL), traffic.openStream(LOCAL)].every((each) => 'end' in each)).toBe(true);
});
