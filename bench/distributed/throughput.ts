import { createMemoryDocuments } from '../../sim/memory-documents.ts';
import { ANA, messageText, ONE_AGENT, percentile, report, turnWatcher } from '../support.ts';
import { cpuSeconds } from './cpu-seconds.ts';
import { openRawQueue } from './raw-queue.ts';
import { CONCURRENCY, openStage } from './stage.ts';

/**
 * Turns per second on Redis and a store in memory, next to jobs per second of BullMQ alone: one process, the same
 * load, alternating. Steady: 64 clients that wait for the end of their turns. Pile: 64 clients that wait for the
 * acknowledgement only, so that work piles up.
 */
const CONVERSATIONS = 1_000;
const TURNS = 3;
const PILE = 3_000;
const ROUNDS = 3;

/** A client's action: its first promise is the acknowledgement, the second one the end. */
type Post = (key: string, turn: number) => Promise<{ ended: Promise<void> }>;

async function steady(post: Post, round: number): Promise<Cost> {
  return costOf(CONVERSATIONS * TURNS, () =>
    byClients(CONVERSATIONS * TURNS, async (index) => {
      const { ended } = await post(`steady-${round}-${index % CONVERSATIONS}`, index);
      await ended;
    }),
  );
}

async function pile(post: Post, round: number): Promise<Cost> {
  const ends: Promise<void>[] = [];
  return costOf(PILE, async () => {
    await byClients(PILE, async (index) => void ends.push((await post(`pile-${round}-${index}`, 0)).ended));
    await Promise.all(ends);
  });
}

async function byClients(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const client = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, client));
}

interface Cost {
  perSecond: number;
  /** Microseconds of CPU each. */
  node: number;
  redis: number;
}

async function costOf(count: number, work: () => Promise<unknown>): Promise<Cost> {
  const before = await cpuSeconds();
  const start = performance.now();
  await work();
  const perSecond = (count * 1_000) / (performance.now() - start);
  const after = await cpuSeconds();
  return {
    perSecond,
    node: ((after.node - before.node) * 1e6) / count,
    redis: ((after.redis - before.redis) * 1e6) / count,
  };
}

await using stage = await openStage({ definition: ONE_AGENT, documents: createMemoryDocuments() });
await using raw = await openRawQueue();
const ended = turnWatcher(stage.troupe);

const postTurn: Post = async (key, turn) => {
  const done = ended(key);
  await stage.troupe.send(key, { author: ANA, content: messageText(turn) });
  return { ended: done };
};
const postJob: Post = (key) => raw.add(key);

const figures: Record<string, number> = {};
for (const [name, load] of [
  ['steady', steady],
  ['pile', pile],
] as const) {
  const rounds: { turn: Cost; job: Cost }[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const job = await load(postJob, round);
    const turn = await load(postTurn, round);
    await stage.troupe.idle();
    // The first round is a warm-up.
    if (round > 0) rounds.push({ turn, job });
  }
  const median = (value: (each: (typeof rounds)[0]) => number) => percentile(rounds.map(value), 0.5);
  figures[`${name}Turns`] = median(({ turn }) => turn.perSecond);
  figures[`${name}Jobs`] = median(({ job }) => job.perSecond);
  figures[`${name}Ratio`] = median(({ turn, job }) => turn.perSecond / job.perSecond);
  figures[`${name}TurnNode`] = median(({ turn }) => turn.node);
  figures[`${name}JobNode`] = median(({ job }) => job.node);
  figures[`${name}TurnRedis`] = median(({ turn }) => turn.redis);
  figures[`${name}JobRedis`] = median(({ job }) => job.redis);
}
report(figures);
