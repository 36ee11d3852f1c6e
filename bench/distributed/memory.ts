import { setTimeout as sleep } from 'node:timers/promises';
import { ANA, messageText, ONE_AGENT, report, turnWatcher } from '../support.ts';
import { openDocumentsElsewhere } from './documents-elsewhere.ts';
import { CONCURRENCY, openStage } from './stage.ts';

/**
 * Memory of a worker process over 10,000 conversations x 3 turns on Redis, with the store in another process: at the
 * end with and without garbage, and after all caches were dropped. All relative to its size after a warm-up.
 */
const CONVERSATIONS = 10_000;
const TURNS = 3;
const WARM_UP = 1_000;
/** Sweeps drop what was idle this long. */
const IDLE_MS = 4_000;
const SWEEP_MS = 2_000;

await using stage = await openStage({
  definition: ONE_AGENT,
  documents: await openDocumentsElsewhere(),
  limits: { idleMs: IDLE_MS, sweepMs: SWEEP_MS },
});
const { troupe } = stage;
const ended = turnWatcher(troupe);

async function converse(name: string, conversations: number): Promise<void> {
  let next = 0;
  const client = async () => {
    while (next < conversations) {
      const conversation = `${name}-${next++}`;
      for (let turn = 0; turn < TURNS; turn++) {
        const done = ended(conversation);
        await troupe.send(conversation, { author: ANA, content: messageText(turn) });
        await done;
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, client));
  await troupe.idle();
}

function megabytes() {
  const { rss, heapUsed } = process.memoryUsage();
  return { rss: rss / 2 ** 20, heap: heapUsed / 2 ** 20 };
}

function collected() {
  for (let times = 0; times < 3; times++) globalThis.gc?.();
  return megabytes();
}

async function passivated() {
  await sleep(IDLE_MS + 2 * SWEEP_MS);
  return collected();
}

await converse('warm-up', WARM_UP);
const before = await passivated();
await converse('c', CONVERSATIONS);
const garbage = megabytes();
const warm = collected();
const idle = await passivated();
report({
  rssBefore: before.rss,
  heapBefore: before.heap,
  rssGarbage: garbage.rss,
  heapGarbage: garbage.heap,
  rssWarm: warm.rss,
  heapWarm: warm.heap,
  rssIdle: idle.rss,
  heapIdle: idle.heap,
  idleKbPerConversation: ((idle.heap - before.heap) * 1_024) / CONVERSATIONS,
});
