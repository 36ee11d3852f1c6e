import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { ActorAddress, turnId } from '../../src/events/index.ts';
import type { Broadcast, Notice } from '../../src/queue/broadcast.ts';
import { createBroadcastHub } from '../../src/queue/in-process-broadcast.ts';
import { createNoticeOutbox } from '../../src/queue/notice-outbox.ts';
import { createRedisBroadcast } from '../../src/queue/redis/redis-broadcast.ts';
import type { RedisBroadcastOptions } from '../../src/queue/redis/redis-broadcast.ts';
import { broadcastConformance } from '../../packages/testing/src/broadcast-conformance.ts';
import { createConnections, needsRedis, REDIS_URL, uniquePrefix, until } from './connections.ts';
import { redisServerPath, startOwnRedis } from './own-redis.ts';

const A = ActorAddress.parse({ tenant: 'default', conversation: 'c1', agent: 'a' });
const TURN = turnId(A, 1);
const STOP: Notice = { type: 'stop', address: A, turn: TURN };

function delta(index: number, text: string, step = 1): Notice {
  return { type: 'text', ...A, turn: TURN, attempt: 1, step, round: 1, index, text };
}

function appended(after: number, head: number, conversation = 'c1'): Notice {
  const { conversation: id } = ActorAddress.parse({ ...A, conversation });
  return { type: 'appended', tenant: A.tenant, conversation: id, after, head };
}

function told(conversation: string, text: string): Notice {
  const address = ActorAddress.parse({ ...A, conversation });
  const at = { ...address, turn: turnId(address, 1), attempt: 1, step: 1, round: 1 };
  const notes = [{ type: 'text' as const, ...at, index: 0, text }];
  return { type: 'recalled', tenant: A.tenant, conversation: address.conversation, notes };
}

function hearing(broadcast: Broadcast): Notice[] {
  const heard: Notice[] = [];
  broadcast.subscribe((notice) => heard.push(notice));
  return heard;
}

const textOf = (notices: readonly Notice[]) =>
  notices.map((each) => (each.type === 'text' ? each.text : '')).join('');

describe('the in-process broadcast keeps the contract', () => {
  const open = async (count: number) => {
    const hub = createBroadcastHub();
    return Array.from({ length: count }, () => hub.join(() => {}));
  };
  for (const each of broadcastConformance(open)) test(`${each.group} ${each.name}`, () => each.run());
});

test('the in-process broadcast reports an error of a listener', async () => {
  const hub = createBroadcastHub();
  const warnings: unknown[] = [];
  const speaker = hub.join(() => {});
  hub
    .join((error) => warnings.push(error))
    .subscribe(() => {
      throw new Error('thrown by a listener');
    });
  speaker.publish(STOP);
  await until(() => warnings.length > 0);
  expect(warnings.map(String)).toEqual(['Error: thrown by a listener']);
});

describe('waiting notices', () => {
  test('lose the oldest text when there is too much of it, and nothing else', () => {
    const outbox = createNoticeOutbox({ maxChars: 10 });
    outbox.add(delta(0, 'aaaa', 1));
    outbox.add(STOP);
    outbox.add(delta(0, 'bbbb', 2));
    outbox.add(appended(0, 1));
    outbox.add(delta(0, 'cccc', 3));
    outbox.add(delta(1, 'a', 1));
    expect(outbox.take()).toEqual([
      STOP,
      delta(0, 'bbbb', 2),
      appended(0, 1),
      delta(0, 'cccc', 3),
      delta(1, 'a', 1),
    ]);
    expect(outbox.dropped()).toBe(1);
    expect(outbox.isEmpty()).toBe(true);
  });

  test('are one per conversation and turn; an append comes after the text that preceded it', () => {
    const outbox = createNoticeOutbox({ maxChars: 1_000 });
    outbox.add(appended(3, 5));
    outbox.add(STOP);
    outbox.add(delta(0, 'hello'));
    outbox.add(appended(0, 1, 'c2'));
    outbox.add(appended(5, 6));
    outbox.add(STOP);
    outbox.add(appended(2, 3));
    expect(outbox.take()).toEqual([STOP, delta(0, 'hello'), appended(0, 1, 'c2'), appended(2, 6)]);
  });

  test('pieces after an answer to a recall do not join those before it', () => {
    const outbox = createNoticeOutbox({ maxChars: 1_000 });
    outbox.add(delta(0, 'one '));
    outbox.add(told('c1', 'one '));
    outbox.add(delta(4, 'two '));
    outbox.add(delta(8, 'three'));
    expect(outbox.take()).toEqual([delta(0, 'one '), told('c1', 'one '), delta(4, 'two three')]);
  });

  test('answers to recalls: the latest of each conversation, within the same bound, and long ones too', () => {
    const outbox = createNoticeOutbox({ maxChars: 10 });
    outbox.add(told('c1', 'aa'));
    outbox.add(told('c1', 'aaaa'));
    outbox.add(told('c2', 'bbbb'));
    expect(outbox.take()).toEqual([told('c1', 'aaaa'), told('c2', 'bbbb')]);
    const long = 'b'.repeat(20);
    for (const name of ['c1', 'c2', 'c3']) outbox.add(told(name, long));
    expect(outbox.take()).toEqual([told('c2', long), told('c3', long)]);
    outbox.add(told('c1', long));
    outbox.add(delta(0, 'more'));
    expect(outbox.take()).toEqual([told('c1', long), delta(0, 'more')]);
    expect(outbox.dropped()).toBe(1);
  });

  test('stay small under a flood', () => {
    const outbox = createNoticeOutbox({ maxChars: 1_000 });
    for (let index = 0; index < 100_000; index += 1) outbox.add(delta(index, 'piece ', index % 50));
    const waiting = outbox.take();
    expect(waiting.length).toBeLessThanOrEqual(50);
    expect(textOf(waiting).length).toBeLessThanOrEqual(1_000);
  });
});

const connections = createConnections();
const members: Broadcast[] = [];
afterEach(async () => {
  await Promise.all(members.splice(0).map((each) => each.close()));
  connections.end();
});

async function joinRedis(prefix: string, process: string, more: Partial<RedisBroadcastOptions> = {}) {
  const broadcast = createRedisBroadcast({
    publisher: more.publisher ?? (await connections.ready('producer')),
    connectSubscriber: () => connections.connect('blocking'),
    prefix,
    process,
    onWarning: () => {},
    ...more,
  });
  members.push(broadcast);
  await broadcast.listening();
  return broadcast;
}

describe.skipIf(REDIS_URL === '')(needsRedis('the Redis broadcast keeps the contract'), () => {
  const open = (count: number) => {
    const prefix = uniquePrefix();
    return Promise.all(Array.from({ length: count }, (_, index) => joinRedis(prefix, `p${index}`)));
  };
  for (const each of broadcastConformance(open)) test(`${each.group} ${each.name}`, () => each.run());
});

describe.skipIf(REDIS_URL === '')(needsRedis('the Redis broadcast'), () => {
  test('joins 10,000 pieces of a reply into a few messages, complete and in order', async () => {
    const prefix = uniquePrefix();
    const [speaker, hearer] = [await joinRedis(prefix, 'p1'), await joinRedis(prefix, 'p2')];
    const heard = hearing(hearer);
    const pieces = Array.from({ length: 10_000 }, (_, index) => `${index} `);
    const began = performance.now();
    for (const [index, text] of pieces.entries()) {
      speaker.publish(delta(index, text));
      if (index % 100 === 99) await new Promise((resolve) => setTimeout(resolve, 2));
    }
    speaker.publish(STOP);
    await until(() => heard.some((each) => each.type === 'stop'));
    expect(textOf(heard)).toBe(pieces.join(''));
    const most = (performance.now() - began) / 50 + 2;
    console.log(`10,000 pieces came in ${speaker.counts().sent} messages, at most ${Math.ceil(most)}`);
    expect(speaker.counts().sent).toBeLessThanOrEqual(most);
    expect(speaker.counts().dropped).toBe(0);
  });

  test('sends other notices at once, together with the text before them', async () => {
    const prefix = uniquePrefix();
    const [speaker, hearer] = [
      await joinRedis(prefix, 'p1', { coalesceMs: 3_600_000 }),
      await joinRedis(prefix, 'p2'),
    ];
    const heard = hearing(hearer);
    speaker.publish(delta(0, 'all of it'));
    speaker.publish(appended(0, 1));
    await until(() => heard.length === 2);
    expect(heard).toEqual([delta(0, 'all of it'), appended(0, 1)]);
    expect(speaker.counts().sent).toBe(1);
  });

  test('sends waiting notices when it is closed', async () => {
    const prefix = uniquePrefix();
    const [speaker, hearer] = [
      await joinRedis(prefix, 'p1', { coalesceMs: 3_600_000 }),
      await joinRedis(prefix, 'p2'),
    ];
    const heard = hearing(hearer);
    speaker.publish(delta(0, 'the end'));
    await speaker.close();
    await until(() => heard.length > 0);
    expect(heard).toEqual([delta(0, 'the end')]);
  });

  test('notices of one process arrive in their order, whatever node they pass', async () => {
    const prefix = uniquePrefix();
    const [speaker, hearer] = [await joinRedis(prefix, 'p1'), await joinRedis(prefix, 'p2')];
    const heard = hearing(hearer);
    const sent = Array.from({ length: 200 }, (_, index) => appended(0, 1, `c${index}`));
    for (const [index, notice] of sent.entries()) {
      speaker.publish(notice);
      await until(() => speaker.counts().sent > index);
    }
    await until(() => heard.length === sent.length);
    expect(heard).toEqual(sent);
  });

  test('ignores invalid notices, counts them and warns once', async () => {
    const prefix = uniquePrefix();
    const warnings: unknown[] = [];
    const hearer = await joinRedis(prefix, 'p1', { onWarning: (warning) => warnings.push(warning) });
    const heard = hearing(hearer);
    const other = await connections.ready('producer');
    const bad = [
      '{',
      'null',
      '[]',
      '{"from":"p2"}',
      JSON.stringify({
        from: 'p2',
        notices: [{ type: 'stop', address: { ...A, tenant: '$where' }, turn: TURN }],
      }),
      JSON.stringify({ from: 'p2', notices: [{ type: 'of a later version' }, STOP, delta(-1, 'x')] }),
    ];
    for (const text of bad) await other.publish(`${prefix}:notices`, text);
    // In a Cluster they are published by any node, and arrive in any order.
    await until(() => heard.length > 0 && hearer.counts().malformed === 7);
    expect(heard).toEqual([STOP]);
    expect(warnings).toHaveLength(1);
  });

  test('does not receive notices of another troupe on the same Redis', async () => {
    const [speaker, hearer] = [await joinRedis(uniquePrefix(), 'p1'), await joinRedis(uniquePrefix(), 'p2')];
    const heard = hearing(hearer);
    speaker.publish(STOP);
    await until(() => speaker.counts().sent === 1);
    const sameServer = await connections.ready('producer');
    await sameServer.ping();
    expect(heard).toEqual([]);
  });
});

const OWN = redisServerPath();

describe.skipIf(OWN === null)(
  needsRedis('the Redis broadcast when Redis is unavailable', OWN !== null),
  () => {
    test('drops notices, warns once, and recovers without help', async () => {
      const server = await startOwnRedis(onTestFinished);
      const own = createConnections(server.url);
      const warnings: string[] = [];
      const join = (process: string) =>
        createRedisBroadcast({
          publisher: own.connect('producer'),
          connectSubscriber: () => own.connect('blocking'),
          prefix: 'p',
          process,
          onWarning: (warning) => warnings.push(String(warning)),
        });
      const [speaker, hearer] = [join('p1'), join('p2')];
      onTestFinished(async () => {
        await Promise.all([speaker.close(), hearer.close()]);
        own.end();
      });
      await Promise.all([speaker.listening(), hearer.listening()]);
      const heard = hearing(hearer);

      await server.kill();
      await until(() => warnings.length >= 2);
      for (let index = 0; index < 1_000; index += 1) speaker.publish(delta(index, 'lost '));
      speaker.publish(STOP);
      await until(() => speaker.counts().dropped >= 2);
      expect(warnings.filter((each) => each.includes('Redis is unavailable'))).toHaveLength(2);

      await server.start();
      await until(() => {
        speaker.publish(appended(0, 1));
        return heard.some((each) => each.type === 'appended');
      });
      await until(() => warnings.length === 4);
      expect(warnings.filter((each) => each.includes('Redis is back'))).toHaveLength(2);
      expect(heard.every((each) => each.type === 'appended')).toBe(true);
    });

    test('drops notices while the server does not answer, and recovers when it does', async () => {
      const server = await startOwnRedis(onTestFinished);
      const own = createConnections(server.url);
      const warnings: string[] = [];
      const publisher = await own.ready('blocking');
      const speaker = createRedisBroadcast({
        publisher,
        connectSubscriber: () => own.connect('blocking'),
        prefix: 'p',
        process: 'p1',
        stallMs: 50,
        onWarning: (warning) => warnings.push(String(warning)),
      });
      onTestFinished(async () => {
        await speaker.close();
        own.end();
      });
      await speaker.listening();
      server.pause();
      speaker.publish(STOP);
      await until(() => warnings.length === 1);
      for (let index = 0; index < 100; index += 1) speaker.publish(appended(index, index + 1, `c${index}`));
      expect(speaker.counts().dropped).toBe(100);
      server.resume();
      await until(() => warnings.length === 2);
      speaker.publish(STOP);
      await until(() => speaker.counts().sent === 2);
      expect(warnings[0]).toContain('Redis is unavailable');
      expect(warnings[1]).toContain('Redis is back');
    });
  },
);
