import type { TroupeInput } from '../src/index.ts';
import { ANA, report, withTroupe } from './support.ts';

/** Two agents that hand a conversation to and fro for 50 turns: model calls, and events that stand twice in a prompt. */
const TURNS = 50;

const goal = (turn: number) => `round ${String(turn).padStart(3, '0')}`;

/** The turns of one side: each answers one round and starts the next; the last just answers. */
const side = (id: string, other: string, first: number) => ({
  id,
  provider: 'scripted' as const,
  tools: ['handoff'],
  script: {
    rules: Array.from({ length: TURNS / 2 }, (_, index) => {
      const turn = first + 2 * index;
      const next = { name: 'handoff', args: { to: other, goal: goal(turn + 1) } };
      return {
        when: { contains: goal(turn) },
        reply: `That was ${turn}.`,
        calls: turn < TURNS ? [next] : [],
      };
    }),
  },
});
const definition: TroupeInput = { agents: [side('left', 'right', 1), side('right', 'left', 2)] };

await withTroupe(definition, async (troupe) => {
  await troupe.send('rally', { author: ANA, content: 'Hello.', to: ['left', 'right'] });
  await troupe.idle();
  const { head } = await troupe.events('rally');
  await troupe.send('rally', { author: ANA, content: `Start ${goal(1)}.`, to: ['left'] });
  await troupe.idle();
  const { events } = await troupe.events('rally', { after: head, limit: 5_000 });
  const turns = events.filter(({ kind }) => kind === 'turn.done').length;
  let calls = 0;
  let twice = 0;
  for (const event of events) {
    if (event.kind !== 'turn.done' || !event.turn) continue;
    calls += event.body.steps;
    const prompt = await troupe.promptOf(event.turn);
    const seqs = prompt.messages.flatMap((message) => message.seqs);
    twice += seqs.length - new Set(seqs).size;
  }
  report({ turns, calls, eventsTwice: twice });
});
