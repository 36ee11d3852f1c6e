import { fill, ANA, ONE_AGENT, messageText, percentile, report, turnWatcher, withTroupe } from './support.ts';

/**
 * Engine overhead of one turn: from the call that posts a message to the end of its turn in the log, durable, with
 * the whole history in the prompt and a model that answers at once. Argument: number of earlier events in the
 * conversation.
 */
const EVENTS = Number(process.argv[2]);
const WARM_UP = 150;
const TURNS = 400;

await withTroupe(ONE_AGENT, async (troupe) => {
  const ended = turnWatcher(troupe);
  const turn = async (conversation: string, text: string) => {
    const start = performance.now();
    const done = ended(conversation);
    await troupe.send(conversation, { author: ANA, content: text });
    await done;
    return performance.now() - start;
  };
  // Runs the same code on another conversation first, so that both sizes are equally warm.
  for (let index = 0; index < WARM_UP; index++) await turn('warm-up', messageText(index));
  await fill(troupe, 'measured', EVENTS);
  for (let index = 0; index < 5; index++) await turn('measured', messageText(index));
  await troupe.idle();
  const times: number[] = [];
  for (let index = 0; index < TURNS; index++) {
    times.push(await turn('measured', messageText(index)));
    // The next message comes when the actor is idle again, as from a person.
    await troupe.idle();
  }
  report({ p50: percentile(times, 0.5), p99: percentile(times, 0.99) });
});
