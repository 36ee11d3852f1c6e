import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import type { TroupeError } from '../../src/base/errors.ts';
import type { Author } from '../../src/events/index.ts';
import { openTroupe } from '../../src/library/runtime/create-troupe.ts';
import { checkLog } from '../../packages/testing/src/check-log.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { replicaSetWay, type ReplicaSet, startReplicaSet } from '../services/replica-set.ts';
import { dropDatabases, HAS_SERVICES, redisUrl } from '../support/mode.ts';

const ANA: Author = { kind: 'user', id: 'u1', name: 'Ana' };
const CONVERSATIONS = 40;
const PREFIX = `mongo_failover_${process.pid}_${Date.now().toString(36)}`;
const isHere = HAS_SERVICES && process.env['TROUPE_TEST_MONGODB'] === replicaSetWay.name;
const name = 'a failover of a replica set of MongoDB';

if (!isHere) test.skip(`${name} (skipped: npm run test:real has it)`, () => {});

/** Repeats a message with the same id until it is accepted, as clients must. */
async function sendForSure(api: Troupe, conversation: string): Promise<void> {
  for (;;) {
    try {
      return void (await api.send(conversation, { id: 'm1', author: ANA, to: ['bo'], content: 'tell' }));
    } catch (error) {
      expect(error).toMatchObject({ code: 'store_unavailable' } satisfies Partial<TroupeError>);
    }
  }
}

describe.runIf(isHere)(name, () => {
  afterAll(() => dropDatabases(new Set([PREFIX])));

  async function openSet(): Promise<ReplicaSet> {
    const set = await startReplicaSet();
    if ('not' in set) throw new Error(set.not);
    onTestFinished(() => set.stop());
    return set;
  }

  test.each(['retryWrites=false', 'retryWrites=true'])(
    'in the middle of turns, with %s, loses no message and repeats no turn',
    async (retries) => {
      const set = await openSet();
      const mongodb = `${set.url.replace('/?', `/${PREFIX}?`)}&${retries}`;
      const agents = [
        {
          id: 'bo',
          provider: 'scripted' as const,
          script: { rules: [{ reply: 'a rather long answer', chunk: 1, chunkDelayMs: 50 }] },
        },
      ];
      const open = (work: boolean) =>
        openTroupe(
          { agents, limits: { leaseMs: 20_000 } },
          {
            mongodb,
            redis: redisUrl(),
            prefix: PREFIX,
            work,
            concurrency: 8,
            constants: { limits: { sweepMs: 2_000 } },
            onWarning: () => {},
          },
        );
      await using api = await open(false);
      await using _one = await open(true);
      await using _two = await open(true);
      const all = Array.from({ length: CONVERSATIONS }, (_, i) => `c${i}`);
      const send = (ids: readonly string[]) => Promise.all(ids.map((id) => sendForSure(api, id)));
      let done = 0;
      api.watch((note) => {
        if (note.type === 'event' && note.event.kind === 'turn.done') done += 1;
      });

      const third = Math.floor(CONVERSATIONS / 3);
      await send(all.slice(0, third));
      await expect.poll(() => done).toBeGreaterThan(2);
      const before = done;
      const at = performance.now();
      await Promise.all([set.stepDown(), send(all.slice(third, 2 * third))]);
      const port = await expect
        .poll(() => set.primary())
        .toBeDefined()
        .then(() => set.primary());
      await Promise.all([port.kill(), send(all.slice(2 * third))]);
      await port.start();

      const isAnswered = async (id: string) =>
        (await api.events(id, { limit: 1_000 })).events.some(({ kind }) => kind === 'turn.done');
      const areAnswered = () => Promise.all(all.map((id) => isAnswered(id).catch(() => false)));
      await expect.poll(areAnswered, { timeout: 120_000, interval: 500 }).not.toContain(false);
      const seconds = (performance.now() - at) / 1_000;
      for (const id of all) {
        const { events } = await api.events(id, { limit: 1_000 });
        expect(checkLog(events, [])).toEqual([]);
        const count = (kind: string) => events.filter((event) => event.kind === kind).length;
        expect([count('message'), count('turn.started'), count('turn.done')], id).toEqual([2, 1, 1]);
      }
      console.log(
        `${retries}: ${CONVERSATIONS} messages, ${before} answered before the primary stepped down and the next was killed, all within ${seconds.toFixed(1)} s after it, 0 lost, 0 turns repeated`,
      );
    },
  );
});
