import { setTimeout as wait } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import type { Troupe } from '../../src/library/troupe.ts';
import { ANA } from '../support.ts';
import { IN_PAGE } from './in-page.ts';

const EVENTS = 200;
const BETWEEN_MS = 25;
const PATIENCE_MS = 10_000;

/**
 * Milliseconds from the call that appends an event to the frame that shows its text. Both sides read the clock of
 * this machine.
 */
export async function eventToPixelMs(page: Page, troupe: Troupe, conversation: string): Promise<number[]> {
  await page.evaluate(IN_PAGE);
  await page.evaluate('bench.watchForMarks()');
  const sent: number[] = [];
  for (let n = 0; n < EVENTS; n++) {
    sent.push(Date.now());
    await troupe.send(conversation, {
      author: ANA,
      to: [],
      content: `mark-${n}-end`,
      replyTo: 'none' as never,
    });
    await wait(BETWEEN_MS);
  }
  // Not `waitForFunction`: the page's policy forbids the evaluation of strings.
  const count = () => page.evaluate<number>('Object.values(bench.seen).filter(Boolean).length');
  for (const until = Date.now() + PATIENCE_MS; (await count()) < EVENTS && Date.now() < until;)
    await wait(50);
  const seen = await page.evaluate<Record<string, number>>('bench.seen');
  return sent.map((at, n) => (seen[`mark-${n}-end`] ?? Number.NaN) - at);
}
