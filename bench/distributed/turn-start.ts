import { setTimeout as sleep } from 'node:timers/promises';
import { createMemoryDocuments } from '../../sim/memory-documents.ts';
import { ANA, messageText, ONE_AGENT, percentile, report } from '../support.ts';
import { openRawQueue } from './raw-queue.ts';
import { NO_SWEEPS, openStage } from './stage.ts';

/**
 * Time from `send` to the moment when the engine gets the actor, and to the model's call, in an idle system with a
 * store in memory. Alternates with BullMQ alone, from `add` to the processor. One process, one message at a time.
 */
const SAMPLES = 600;
const WARM_UP = 200;
const CONVERSATIONS = 50;
const PAUSE_MS = 2;

const marks = { taken: 0, called: 0, raw: 0 };
await using stage = await openStage({
  definition: ONE_AGENT,
  documents: createMemoryDocuments(),
  limits: NO_SWEEPS,
  onTaken: () => (marks.taken = performance.now()),
  onModelCall: () => (marks.called = performance.now()),
});
await using raw = await openRawQueue(() => (marks.raw = performance.now()));

const times = { taken: [] as number[], called: [] as number[], raw: [] as number[] };
for (let index = 0; index < WARM_UP + SAMPLES; index++) {
  const conversation = `c-${index % CONVERSATIONS}`;
  await sleep(PAUSE_MS);
  const added = performance.now();
  await (
    await raw.add(conversation)
  ).ended;
  await sleep(PAUSE_MS);
  const sent = performance.now();
  await stage.troupe.send(conversation, { author: ANA, content: messageText(index) });
  await stage.troupe.idle();
  if (index < WARM_UP) continue;
  times.raw.push(marks.raw - added);
  times.taken.push(marks.taken - sent);
  times.called.push(marks.called - sent);
}
report(
  Object.fromEntries(
    Object.entries(times).flatMap(([name, values]) => [
      [`${name}P50`, percentile(values, 0.5)],
      [`${name}P99`, percentile(values, 0.99)],
    ]),
  ),
);
