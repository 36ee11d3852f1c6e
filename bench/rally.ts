import type { TroupeInput } from '../src/index.ts';

/**
 * Two agents that hand a conversation back and forth. Each answers one round and starts the next; the last just
 * answers.
 */
export const RALLY_TURNS = 50;

const goal = (turn: number) => `round ${String(turn).padStart(3, '0')}`;

const side = (id: string, other: string, first: number) => ({
  id,
  provider: 'scripted' as const,
  tools: ['handoff'],
  script: {
    rules: Array.from({ length: RALLY_TURNS / 2 }, (_, index) => {
      const turn = first + 2 * index;
      const next = { name: 'handoff', args: { to: other, goal: goal(turn + 1) } };
      return {
        when: { contains: goal(turn) },
        reply: `That was ${turn}.`,
        calls: turn < RALLY_TURNS ? [next] : [],
      };
    }),
  },
});

export const RALLY: TroupeInput = { agents: [side('left', 'right', 1), side('right', 'left', 2)] };
/** The message to `left` that starts it. */
export const rallyStart = `Start ${goal(1)}.`;
