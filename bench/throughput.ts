import { ANA, messageText, ONE_AGENT, report, turnWatcher, withTroupe } from './support.ts';

/** Turns per second: 1,000 conversations x 3 turns, 64 at once, durable. */
const CONVERSATIONS = 1_000;
const TURNS = 3;
const AT_ONCE = 64;
const WARM_UP = 400;

await withTroupe(ONE_AGENT, async (troupe) => {
  const ended = turnWatcher(troupe);
  const play = async (prefix: string, conversations: number) => {
    let next = 0;
    const client = async () => {
      while (next < conversations) {
        const conversation = `${prefix}-${next++}`;
        for (let turn = 0; turn < TURNS; turn++) {
          const done = ended(conversation);
          await troupe.send(conversation, { author: ANA, content: messageText(turn) });
          await done;
        }
      }
    };
    const start = performance.now();
    await Promise.all(Array.from({ length: AT_ONCE }, client));
    return (conversations * TURNS * 1_000) / (performance.now() - start);
  };
  await play('warm-up', WARM_UP);
  const turnsPerSecond = await play('measured', CONVERSATIONS);
  await troupe.idle();
  report({ turnsPerSecond });
});
