import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Author } from '../../src/events/index.ts';
import { openTroupe } from '../../src/library/runtime/create-troupe.ts';
import { checkLog } from '../../packages/testing/src/check-log.ts';
import { dropDatabases, HAS_SERVICES, mongoUrl } from '../support/mode.ts';
import { openTopology, TOPOLOGY } from '../support/topology.ts';

const ANA: Author = { kind: 'user', id: 'u1', name: 'Ana' };
const CONVERSATIONS = 60;
const PREFIX = `failover_${process.pid}_${Date.now().toString(36)}`;
const isHere = HAS_SERVICES && TOPOLOGY !== null;
const name = `a failover of ${TOPOLOGY ?? 'Redis Cluster or Sentinel'}`;

if (!isHere) test.skip(`${name} (skipped: npm run test:real has it)`, () => {});

describe.runIf(isHere)(name, () => {
  afterAll(() => dropDatabases(new Set([PREFIX])));

  test('in the middle of turns loses no message and repeats no turn', async () => {
    const topology = await openTopology();
    onTestFinished(() => topology.stop());
    const open = (work: boolean) =>
      openTroupe(
        {
          agents: [
            {
              id: 'bo',
              provider: 'scripted',
              script: { rules: [{ reply: 'a rather long answer', chunk: 1, chunkDelayMs: 20 }] },
            },
          ],
          limits: { leaseMs: 15_000 },
        },
        {
          mongodb: mongoUrl(PREFIX),
          redis: topology.url,
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
    const send = (from: number, to: number) =>
      Promise.all(
        Array.from({ length: to - from }, (_, i) =>
          api.send(`c${from + i}`, { author: ANA, to: ['bo'], content: 'tell' }),
        ),
      );
    let done = 0;
    api.watch((note) => {
      if (note.type === 'event' && note.event.kind === 'turn.done') done += 1;
    });

    await send(0, CONVERSATIONS / 2);
    await expect.poll(() => done).toBeGreaterThan(5);
    const doneBefore = done;
    const primary = await topology.primaryOf(`{${PREFIX}}:wake:wait`);
    await primary.kill();
    const killedAt = performance.now();
    // Accepted without a wake: the queue is away.
    await send(CONVERSATIONS / 2, CONVERSATIONS);

    // From the log: what ended while Redis was away was told to nobody.
    const isAnswered = async (i: number) =>
      (await api.events(`c${i}`, { limit: 1_000 })).events.some(({ kind }) => kind === 'turn.done');
    const all = Array.from({ length: CONVERSATIONS }, (_, i) => i);
    await expect
      .poll(async () => (await Promise.all(all.map(isAnswered))).every(Boolean), {
        timeout: 120_000,
        interval: 500,
      })
      .toBe(true);
    const seconds = (performance.now() - killedAt) / 1_000;
    for (let i = 0; i < CONVERSATIONS; i += 1) {
      const { events } = await api.events(`c${i}`, { limit: 1_000 });
      expect(checkLog(events, [])).toEqual([]);
      const count = (kind: string) => events.filter((event) => event.kind === kind).length;
      expect([count('turn.started'), count('turn.done')], `c${i}`).toEqual([1, 1]);
    }
    expect((await topology.primaryOf(`{${PREFIX}}:wake:wait`)).port).not.toBe(primary.port);
    console.log(
      `${TOPOLOGY}: ${CONVERSATIONS} messages, ${doneBefore} answered before the kill of the primary, all within ${seconds.toFixed(1)} s after it, 0 lost, 0 turns repeated`,
    );
  });
});
