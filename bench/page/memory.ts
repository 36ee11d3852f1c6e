import { setTimeout as wait } from 'node:timers/promises';
import type { CDPSession, Page } from 'playwright-core';
import { fill } from '../support.ts';
import type { Troupe } from '../../src/library/troupe.ts';

const MIB = 1024 * 1024;
const LOOK_MS = 200;
const PATIENCE_MS = 240_000;

/** MiB of live JavaScript objects in the page after it has shown `counts` events that came while it was open. */
export async function heapAfter(
  page: Page,
  troupe: Troupe,
  conversation: string,
  counts: readonly number[],
): Promise<number[]> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  const heaps: number[] = [];
  for (const count of counts) {
    const { head } = await troupe.state(conversation);
    await fill(troupe, conversation, count - head);
    await shows(page, count);
    heaps.push(await heapOf(session));
  }
  return heaps;
}

/** Resolves when the page shows this seq. */
async function shows(page: Page, seq: number): Promise<void> {
  const texts = [String(seq), seq.toLocaleString('en-US')];
  const deadline = Date.now() + PATIENCE_MS;
  while (Date.now() < deadline) {
    const body = await page.evaluate<string>('document.body.innerText');
    if (texts.some((text) => body.includes(text))) return;
    await wait(LOOK_MS);
  }
  throw new Error(`the page never showed seq ${seq}`);
}

async function heapOf(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.enable');
  await session.send('HeapProfiler.collectGarbage');
  await session.send('HeapProfiler.collectGarbage');
  const { metrics } = await session.send('Performance.getMetrics');
  return (metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? Number.NaN) / MIB;
}
