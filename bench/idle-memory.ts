import { type Clock, createTroupe, systemClock } from '../src/index.ts';
import { ANA, ONE_AGENT, report } from './support.ts';

/** Heap per actor, while it is warm and after passivation. Time runs 100 times as fast. */
const CONVERSATIONS = 2_000;
const SPEED = 100;
const IDLE_MS = 120_000;

const fastClock: Clock = {
  now: () => Math.floor(systemClock.now() * SPEED),
  monotonic: () => systemClock.monotonic() * SPEED,
  sleep: (ms, signal) => systemClock.sleep(ms / SPEED, signal),
};

await using troupe = await createTroupe(ONE_AGENT, { clock: fastClock });

async function converse(from: number, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, index) =>
      troupe.send(`c-${from + index}`, { author: ANA, content: 'hello' }),
    ),
  );
  await troupe.idle();
}

function heap(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

await converse(0, 1_200);
await fastClock.sleep(IDLE_MS);
const before = heap();
for (let from = 0; from < CONVERSATIONS; from += 200) await converse(10_000 + from, 200);
const warm = heap();
await fastClock.sleep(IDLE_MS);
report({
  warmKbPerActor: (warm - before) / CONVERSATIONS / 1_024,
  idleKbPerActor: (heap() - before) / CONVERSATIONS / 1_024,
});
