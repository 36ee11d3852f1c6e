import fc from 'fast-check';
import type { RedisClient } from '../../src/queue/redis/connect-redis.ts';
import { expect } from 'vitest';
import { NO_METRICS } from '../../src/events/metrics.ts';
import { type OpenOptions, openTroupe, type TroupeOptions } from '../../src/library/runtime/create-troupe.ts';
import { checkLog } from '../../packages/testing/src/check-log.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import { FIXED, type KeyType, NONSENSE, plant, TYPES } from '../queue/queue-damage.ts';
import { HAS_SERVICES } from '../support/mode.ts';
import { attack } from './attack.ts';
import { openShared } from './redis-stage.ts';
import { ANA } from './stage.ts';

interface Damage {
  name: string;
  write: (redis: RedisClient, own: (name: string) => string) => Promise<unknown>;
}

/** Keys of the queue, of single wakes and of the caps, without the prefix. */
const KEYS = [
  ...Object.keys(FIXED).map((part) => `wake:${part}`),
  ...['de', 'dn'].map((part) => `wake:${part}:default/c/bo`),
  'wake:1',
  'wake:1:lock',
  'wake-backlog:default',
  'slots:tenant:default',
  'slots:provider:openai-compatible',
  'asking:openai-compatible',
  'calls:openai-compatible',
];
const FOREVER = 9e15;

const wrongTypes: Damage[] = KEYS.flatMap((name) =>
  TYPES.map((type: KeyType) => ({
    name: `${name} as ${type}`,
    write: (redis: RedisClient, own: (name: string) => string) => plant(redis, own(name), type),
  })),
);
const nonsense: Damage[] = [
  ...NONSENSE.map(({ name, write }) => ({
    name,
    write: (redis: RedisClient, own: (part: string) => string) => write(redis, (part) => own(`wake:${part}`)),
  })),
  {
    name: 'places that are never released',
    write: (redis, own) =>
      Promise.all(
        ['slots:tenant:default', 'slots:provider:openai-compatible'].map((name) =>
          redis.zadd(own(name), ...['a', 'b', 'c', 'd'].flatMap((slot) => [FOREVER, `x/${slot}`])),
        ),
      ),
  },
  {
    name: 'a rate without any calls left',
    write: (redis, own) => redis.hset(own('calls:openai-compatible'), { level: -1e300, at: FOREVER }),
  },
];

attack(
  36,
  'with anything in the keys of Redis, work continues and the damage is named',
  async (refused) => {
    const counted = new Map<string, number>();
    const warnings: string[] = [];
    let openWorker = () => Promise.reject<unknown>(new Error('not yet'));
    const { stage, redis, prefix } = await openShared({
      company: {
        limits: {
          turnsPerTenant: 4,
          providers: { 'openai-compatible': { turns: 4, callsPerMinute: 60_000 } },
        },
      },
      async open(input: TroupeInput, options: OpenOptions) {
        const metrics: TroupeOptions['metrics'] = {
          ...NO_METRICS,
          count: (name, labels) => {
            const series = [name, ...Object.values(labels)].join(' ');
            counted.set(series, (counted.get(series) ?? 0) + 1);
          },
        };
        const onWarning = (error: unknown) => void warnings.push(String(error));
        const given = { ...options, constants: { limits: { sweepMs: 500 } }, onWarning };
        openWorker = () => openTroupe(input, { ...given, metrics });
        return openTroupe(input, { ...given, onWarning: options.onWarning ?? onWarning, work: false });
      },
    });
    await using _ = stage;
    const own = (name: string) => `{${prefix}}:${name}`;
    const ready = async () => (await stage.ask('/readyz')).status;

    // Before a repair, the API names the reason why no work would be done.
    for (const part of ['events', 'meta', 'id', 'marker']) {
      await plant(redis, own(`wake:${part}`), 'list');
      // Frequent requests get an answer up to a second old.
      await expect
        .poll(async () => (await stage.ask('/readyz')).body['queue'])
        .toContain(own(`wake:${part}`));
      expect(await ready()).toBe(503);
      refused('503 with the name of the key');
      if (part !== 'marker') await redis.del(own(`wake:${part}`));
    }
    await stage.troupe.send('c', { author: ANA, to: ['bo'], content: 'hello' });
    await using _worker = (await openWorker()) as AsyncDisposable;
    const answers = async (conversation: string) =>
      (await stage.troupe.events(conversation)).events.filter(({ kind }) => kind === 'turn.done').length;
    await expect.poll(() => answers('c')).toBe(1);
    await expect.poll(ready).toBe(200);
    refused('emptied, and agents woken again from the store');

    let sent = 1;
    await fc.assert(
      fc.asyncProperty(
        fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...wrongTypes) }, fc.constantFrom(...nonsense)),
        async ({ write }) => {
          await write(redis, own);
          await stage.troupe.send('c', { author: ANA, to: ['bo'], content: 'and now?' });
          sent += 1;
          await expect.poll(() => answers('c')).toBe(sent);
        },
      ),
      // A script that fails here has already taken the deduplication key of the wake.
      {
        numRuns: 15,
        endOnFailure: true,
        examples: [[nonsense.find(({ name }) => name === 'a concurrency that is not a number')!]],
      },
    );
    refused('repaired, and work continued');
    await expect.poll(ready).toBe(200);
    expect(checkLog((await stage.troupe.events('c', { limit: 5_000 })).events, [])).toEqual([]);
    expect(warnings.join('\n')).toContain(own('wake:marker'));
    expect(counted.get('queue_mended key')).toBeGreaterThan(0);
    expect(counted.get('queue_mended queue')).toBeGreaterThan(0);
  },
  { missing: HAS_SERVICES ? null : 'MongoDB and Redis' },
);
