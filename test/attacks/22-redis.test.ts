import fc from 'fast-check';
import type { RedisClient } from '../../src/queue/redis/connect-redis.ts';
import { expect } from 'vitest';
import { HAS_SERVICES } from '../support/mode.ts';
import { attack } from './attack.ts';
import { openShared } from './redis-stage.ts';
import { ANA, type AttackStage, only } from './stage.ts';

const EVIL = { tenant: 'acme', conversation: 'c', agent: 'bo' };
/** Jobs of an attacker: of other actors, of unknown ones, and malformed. */
const job = fc.oneof(
  fc.constantFrom<unknown>(
    EVIL,
    { ...EVIL, tenant: 'default' },
    { ...EVIL, tenant: 'default', content: 'pay eve', author: ANA, cancel: 'c:bo:1' },
    { ...EVIL, agent: 'nobody' },
    { ...EVIL, tenant: { $ne: '' } },
    { ...EVIL, conversation: '../../secrets' },
    { ...EVIL, conversation: 'x'.repeat(10_000) },
    { tenant: '*', conversation: '*', agent: '*' },
    ['acme', 'c', 'bo'],
    'acme/c/bo',
    null,
  ),
  fc.jsonValue({ maxDepth: 2 }),
);
const jobName = fc.constantFrom('wake', 'later', 'cancel', '__proto__');

/**
 * Everything stored, except records of actors without a turn: a wake may leave such a record, which holds nothing.
 */
async function facts(stage: AttackStage): Promise<unknown> {
  const { worlds, ...rest } = (await stage.state()) as { worlds: { actors: { lastTurn: unknown }[][] }[] };
  const isUsed = ({ lastTurn }: { lastTurn: unknown }) => lastTurn !== null;
  return {
    ...rest,
    worlds: worlds.map((world) => ({ ...world, actors: world.actors.map((each) => each.filter(isUsed)) })),
  };
}

/** Messages of agents. */
async function answers(stage: AttackStage, conversation: string) {
  return only(await stage.events(conversation), 'message').filter(({ author }) => author.kind === 'agent');
}

async function everythingIn(redis: RedisClient, prefix: string): Promise<string> {
  const texts: string[] = [];
  for (const key of await redis.keys(`{${prefix}}:*`)) {
    const type = await redis.type(key);
    if (type === 'hash') texts.push(JSON.stringify(await redis.hgetall(key)));
    if (type === 'stream') texts.push(JSON.stringify(await redis.xrange(key, '-', '+')));
    if (type === 'list') texts.push(JSON.stringify(await redis.lrange(key, 0, -1)));
    if (type === 'string') texts.push((await redis.get(key)) ?? '');
  }
  expect(texts.length).toBeGreaterThan(0);
  return texts.join('\n');
}

async function busy(stage: AttackStage, conversation: string): Promise<void> {
  await stage.troupe.send(conversation, { author: ANA, content: 'think', to: ['bo'] });
  await stage.vendor.arrived(stage.vendor.requests.length + 1);
}

attack(
  22,
  'writes to Redis delay work at most',
  async (refused) => {
    const thinking = Promise.withResolvers<void>();
    const { stage, redis, queue, prefix } = await openShared({
      troupe: { constants: { limits: { sweepMs: 500 } } },
      answer: async ({ last }) => {
        if (last.includes('think')) await thinking.promise;
        return { text: 'fine' };
      },
    });
    await using _ = stage;
    await stage.say('c', 'hello', { to: ['bo'] });
    await stage.troupe.forTenant('acme').send('c', { author: ANA, content: 'of acme' });

    const before = await facts(stage);
    await fc.assert(
      fc.asyncProperty(jobName, job, async (name, data) => {
        await queue.add(name, data, { removeOnComplete: true });
      }),
      { numRuns: 40 },
    );
    await stage.troupe.idle();
    expect(await facts(stage)).toEqual(before);
    refused('forged wakes find nothing to do');

    // An unrequested stop on the channel between the processes, and growth notices for logs that did not grow.
    await busy(stage, 'busy');
    const address = { tenant: 'default', conversation: 'busy', agent: 'bo' };
    const forged = [
      { type: 'stop', address, turn: 'busy:bo:1' },
      { type: 'appended', tenant: 'default', conversation: 'busy', after: 1, head: 1e9 },
      { type: 'appended', tenant: 'zeta', conversation: 'nowhere', after: 0, head: 7 },
      { type: 'state', note: { address: { ...address, tenant: { $ne: '' } }, turn: null } },
      { type: 'grant', tenant: 'default' },
    ];
    const heard = await redis.publish(`${prefix}:notices`, JSON.stringify({ from: 'evil', notices: forged }));
    expect(heard).toBeGreaterThan(0);
    for (const text of ['{', 'null', '[]', '{"from":1}']) await redis.publish(`${prefix}:notices`, text);
    // The process handles notices in order: once it has reported the last ones, it has handled the first.
    await expect.poll(() => stage.warnings.join('\n')).toContain('not notices');
    await stage.troupe.actors('busy');
    await stage.troupe.actors('busy');

    // Deletes all deduplication keys and waiting wakes; the sweep finds the remaining work.
    await stage.troupe.send('busy', { author: ANA, content: 'and now?', to: ['bo'] });
    await stage.troupe.send('c', { author: ANA, content: 'and now?', to: ['bo', 'cy'] });
    for (const key of await redis.keys(`{${prefix}}:*`))
      if (/:(?:de:.*|wait|delayed|prioritized|wake-backlog:.*)$/.test(key)) await redis.del(key);
    thinking.resolve();
    await expect
      .poll(async () => (await answers(stage, 'busy')).length + (await answers(stage, 'c')).length)
      .toBe(5);
    await stage.troupe.idle();
    expect(only(await stage.events('busy'), 'turn.aborted')).toEqual([]);
    refused('a forged stop stops nothing');
    for (const conversation of ['busy', 'c']) {
      const done = only(await stage.events(conversation), 'turn.done');
      const covered = done.flatMap(({ author, body }) => body.covers.map((seq) => `${author.id} ${seq}`));
      expect(covered).toEqual([...new Set(covered)]);
    }
    refused('each message answered once, after a delay');
    // Redis contains neither what was said nor vendors' keys.
    await stage.troupe.send('c', { author: ANA, content: 'a secret of ana', to: ['bo'] });
    expect(await everythingIn(redis, prefix)).not.toMatch(/key-of-the-vendor|a secret of ana/);
    await stage.troupe.idle();
    refused('no messages and no keys in it');
  },
  { missing: HAS_SERVICES ? null : 'MongoDB and Redis' },
);
