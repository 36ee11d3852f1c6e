import { defineTroupe, type TroupeInput } from '../../src/index.ts';

/** Number of tasks that a delegating agent gives in each turn. */
export const TASKS_PER_TURN = 20;

const FLOODED_WINDOW = 32_000;

/**
 * The agents of both tenants: one that answers at once, and one for each kind of noise. `modelUrl` is the server
 * whose streams never end.
 */
export function neighbours(modelUrl: string): TroupeInput {
  const scripted = { provider: 'scripted' as const, contextWindow: 10_000_000 };
  return defineTroupe({
    agents: [
      { id: 'calm', ...scripted, script: { rules: [{ reply: 'Noted.' }] } },
      // Its small context window forces the compaction of the flood.
      { id: 'flooded', ...scripted, contextWindow: FLOODED_WINDOW, script: { rules: [{ reply: 'Read.' }] } },
      { id: 'left', ...scripted, tools: ['delegate'], script: delegating('right') },
      { id: 'right', ...scripted, tools: ['delegate'], script: delegating('left') },
      {
        id: 'streamed',
        provider: 'openai-compatible',
        model: 'endless',
        baseUrl: modelUrl,
        contextWindow: 128_000,
      },
    ],
  });
}

/** Each turn gives twenty different tasks to the other agent, which does the same. */
function delegating(to: string) {
  const calls = Array.from({ length: TASKS_PER_TURN }, (_, index) => ({
    name: 'delegate',
    args: { to, task: `Part ${index + 1}.`, force: true },
  }));
  return { rules: [{ calls }] };
}
