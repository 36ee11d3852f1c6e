import { describe, expect, test } from 'vitest';
import { firstWay } from './first-way.ts';
import type { Found, Way } from './first-way.ts';
import { describeServices, planWays, serviceUrls, startServices } from './services.ts';

const found = (how: string): Found => ({ url: `${how}:1`, how, stop: async () => {} });

describe('a service', () => {
  function way(name: string, open: Way['open'], tried: string[]): Way {
    return {
      name,
      open() {
        tried.push(name);
        return open();
      },
    };
  }

  test('is taken from the first available way, and later ways are not tried', async () => {
    const tried: string[] = [];
    const service = await firstWay([
      way('compose', async () => ({ not: 'no engine' }), tried),
      way('path', () => Promise.reject(new Error('it did not answer')), tried),
      way('pip', async () => found('pip'), tried),
      way('never', async () => found('never'), tried),
    ]);
    expect(service).toMatchObject({ url: 'pip:1', how: 'pip' });
    expect(tried).toEqual(['compose', 'path', 'pip']);
  });

  test('without an available way is missing, with the reasons of all ways', async () => {
    const service = await firstWay([
      way('compose', async () => ({ not: 'no engine' }), []),
      way('path', () => Promise.reject(new Error('it did not answer')), []),
    ]);
    expect(service).toEqual({ missing: 'compose: no engine; path: it did not answer' });
  });
});

describe('the services of a test run', () => {
  const named = {
    MONGODB_URL: 'mongodb://db.example/x?tls=true',
    REDIS_URL: 'rediss://cache.example:1/3',
    POSTGRES_URL: 'postgres://sql.example/x',
  };

  test.each<[string, NodeJS.ProcessEnv, string[], string[], string[]]>([
    [
      'without URLs: docker compose, the PATH, then an installation',
      {},
      ['docker compose', 'mongod', 'MongoDB engine', 'SecantusDB'],
      ['docker compose', 'redis-server', 'apt-get', 'Valkey'],
      ['docker compose', 'postgres', 'apt-get'],
    ],
    [
      'with one URL given: that one, whatever else there is',
      { MONGODB_URL: named.MONGODB_URL, REDIS_URL: '' },
      ['MONGODB_URL'],
      ['docker compose', 'redis-server', 'apt-get', 'Valkey'],
      ['docker compose', 'postgres', 'apt-get'],
    ],
    [
      'with one chosen by name: that one alone',
      { TROUPE_TEST_MONGODB: 'SecantusDB', TROUPE_TEST_REDIS: 'Valkey', TROUPE_TEST_POSTGRES: 'apt-get' },
      ['SecantusDB'],
      ['Valkey'],
      ['apt-get'],
    ],
    [
      'with TROUPE_TEST_SERVICES=none: nothing but URLs given',
      { TROUPE_TEST_SERVICES: 'none', REDIS_URL: named.REDIS_URL },
      ['TROUPE_TEST_SERVICES'],
      ['REDIS_URL'],
      ['TROUPE_TEST_SERVICES'],
    ],
  ])('are looked for in this order %s', (_, env, mongodb, redis, postgres) => {
    const plan = planWays(env);
    expect(plan.mongodb.map(({ name }) => name)).toEqual(mongodb);
    expect(plan.redis.map(({ name }) => name)).toEqual(redis);
    expect(plan.postgres.map(({ name }) => name)).toEqual(postgres);
  });

  test('with URLs are used as they are', async () => {
    const services = await startServices(named);
    expect(serviceUrls(services)).toEqual(named);
    expect(describeServices(services)).toBe(
      'services: MongoDB: MONGODB_URL, Redis: REDIS_URL, PostgreSQL: POSTGRES_URL',
    );
    await services.stop();
  });

  test('that are missing have no URL, and the line gives the reason', async () => {
    const services = await startServices({ TROUPE_TEST_SERVICES: 'none', REDIS_URL: named.REDIS_URL });
    expect(serviceUrls(services)).toEqual({
      MONGODB_URL: undefined,
      REDIS_URL: named.REDIS_URL,
      POSTGRES_URL: undefined,
    });
    expect(describeServices(services)).toBe(
      'services: MongoDB: none (TROUPE_TEST_SERVICES: none), Redis: REDIS_URL, PostgreSQL: none (TROUPE_TEST_SERVICES: none)',
    );
  });
});
