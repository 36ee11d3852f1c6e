import { fill, messageText, ANA, ONE_AGENT, report, withTroupe } from './support.ts';

/** Appends of addressed-to-nobody messages: one after the other, and many at once. */
const EVENTS = 10_000;

await withTroupe(ONE_AGENT, async (troupe) => {
  await fill(troupe, 'warm-up', 2_000);
  const together = await rate(() => fill(troupe, 'together', EVENTS));
  const oneByOne = await rate(async () => {
    for (let index = 0; index < EVENTS; index++) {
      await troupe.send('one-by-one', { author: ANA, content: messageText(index), replyTo: 'none' as never });
    }
  });
  report({ together, oneByOne });
});

async function rate(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return (EVENTS * 1_000) / (performance.now() - start);
}
