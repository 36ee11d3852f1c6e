import type { TroupeInput } from '../src/index.ts';
import { ANA, report, withTroupe } from './support.ts';

/** Many agents in one conversation, and the cost of idle actors. */
const AGENTS = 1_000;

const definition: TroupeInput = {
  agents: Array.from({ length: AGENTS }, (_, index) => ({
    id: `agent-${index}`,
    provider: 'scripted' as const,
    script: { rules: [{ reply: 'Here.' }] },
  })),
};

await withTroupe(definition, async (troupe) => {
  const names = troupe.agents.map(({ id }) => id);
  const start = performance.now();
  for (let from = 0; from < AGENTS; from += 250) {
    await troupe.send('assembly', { author: ANA, content: 'Roll call.', to: names.slice(from, from + 250) });
  }
  await troupe.idle();
  const seconds = (performance.now() - start) / 1_000;
  const { head } = await troupe.events('assembly', { limit: 1 });
  const actors = await troupe.actors('assembly');
  const answered = actors.filter(({ lastTurn }) => lastTurn !== null).length;
  report({ answered, seconds, events: head });
});
