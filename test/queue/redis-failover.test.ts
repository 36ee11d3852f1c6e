import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { turnId } from '../../src/events/index.ts';
import type { Notice } from '../../src/queue/broadcast.ts';
import { checkRedis } from '../../src/queue/redis/connect-redis.ts';
import { createRedisAdmission } from '../../src/queue/redis/redis-admission.ts';
import { createRedisBroadcast } from '../../src/queue/redis/redis-broadcast.ts';
import type { WakeOutcome } from '../../src/queue/router.ts';
import type { RedisTopology } from '../services/redis-topology.ts';
import { openTopology, TOPOLOGY } from '../support/topology.ts';
import { address, openStage, until } from './bullmq-stage.ts';
import { createConnections, uniquePrefix } from './connections.ts';

const DONE: WakeOutcome = { kind: 'done' };
const ignore = () => {};
const name = `wakes, caps and notices of a ${TOPOLOGY ?? 'Redis Cluster or Sentinel'}`;

if (!TOPOLOGY) test.skip(`${name} (skipped: npm run test:real has them)`, ignore);

describe.skipIf(!TOPOLOGY)(name, () => {
  let topology: RedisTopology;
  beforeAll(async () => {
    topology = await openTopology();
  }, 60_000);
  afterAll(() => topology.stop());

  test('are there again after the primary that holds them was killed, in processes that only waited', async () => {
    await using stage = openStage(topology.url);
    const router = stage.open({ lockMs: 1_000, stalledCheckMs: 500 });
    const served: string[] = [];
    router.start(async ({ agent }) => (served.push(agent), DONE), { concurrency: 8, onError: ignore });
    await router.wake(address('before'));
    await until(() => served.includes('before'), { what: 'a wake before' });

    const connections = createConnections(topology.url);
    onTestFinished(() => connections.end());
    const redis = await connections.ready('producer');
    const join = async (process: string) => {
      const connectSubscriber = () => connections.connect('blocking');
      const options = { publisher: redis, connectSubscriber, prefix: stage.prefix, process, pingMs: 500 };
      const broadcast = createRedisBroadcast({ ...options, onWarning: ignore });
      onTestFinished(() => broadcast.close());
      await broadcast.listening();
      return broadcast;
    };
    const [speaker, hearer] = [await join('p1'), await join('p2')];
    const heard: Notice[] = [];
    hearer.subscribe((notice) => heard.push(notice));
    const caps = { providers: { p: { turns: 1 } } };
    const admission = createRedisAdmission({
      redis,
      prefix: stage.prefix,
      caps,
      onWarning: ignore,
      slotMs: 60_000,
    });
    onTestFinished(() => admission.close());

    const primary = await topology.primaryOf(stage.key('wait'));
    await primary.kill();
    const killedAt = performance.now();

    let sent = 0;
    const wakeAgain = () =>
      router.wake(address(`after${(sent += 1)}`)).then(
        () => true,
        () => false,
      );
    await until(wakeAgain, { what: 'a wake that is accepted' });
    await until(() => served.includes(`after${sent}`), { what: 'a wake that is served' });
    const afterMs = performance.now() - killedAt;
    await until(
      () => {
        speaker.publish({ type: 'stop', address: address('a'), turn: turnId(address('a'), 1) });
        return heard.length > 0;
      },
      { what: 'a notice' },
    );
    expect((await admission.enter(address('a'), 'p')).kind).toBe('admitted');
    expect((await admission.enter(address('b'), 'p')).kind).toBe('full');
    expect((await topology.primaryOf(stage.key('wait'))).port).not.toBe(primary.port);
    console.log(
      `${TOPOLOGY}: wakes are served ${(afterMs / 1_000).toFixed(1)} s after the kill of their primary`,
    );
    await primary.start();
  }, 60_000);

  test('are on servers that pass the check before the start; one of them alone is refused by name', async () => {
    const warnings: unknown[] = [];
    const onWarning = (warning: unknown) => warnings.push(warning);
    expect(await checkRedis(topology.url, { onWarning })).toMatchObject({ policy: 'noeviction' });
    expect(warnings).toEqual([]);
    const [, hosts = ''] = /:\/\/([^/]+)/.exec(topology.url) ?? [];
    const alone = `redis://${hosts.split(',')[0]}`;
    await expect(checkRedis(alone, { onWarning })).rejects.toMatchObject({
      code: 'server_unsuitable',
      message: expect.stringContaining(topology.url.slice(0, 15)),
    });
    const primary = `127.0.0.1:${(await topology.primaryOf(`{${uniquePrefix()}}`)).port}`;
    const wrong = {
      'redis+cluster': `redis+sentinel://${primary}/x`,
      'redis+sentinel': `redis+cluster://${primary}`,
    };
    const scheme = topology.url.startsWith('redis+cluster') ? 'redis+cluster' : 'redis+sentinel';
    await expect(checkRedis(wrong[scheme], { onWarning })).rejects.toMatchObject({
      code: 'server_unsuitable',
    });
  });
});
