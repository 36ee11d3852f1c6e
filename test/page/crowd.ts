import type { PageStage, Play } from './stage.ts';

export const CROWD_SIZE = 50;
/** The agent whose vendor refuses. */
export const UNLUCKY = 'agent-37';

/** Fifty agents that answer in a word. One of them fails. */
export const CROWD: Play = {
  company: (baseUrl) => ({
    agents: Array.from({ length: CROWD_SIZE }, (_, n) => ({
      id: agentNumber(n + 1),
      name: `Agent ${n + 1}`,
      provider: 'openai-compatible',
      model: agentNumber(n + 1),
      baseUrl,
      apiKeyEnv: 'KEY',
      contextWindow: 32_000,
      description: `Number ${n + 1} of the crowd.`,
    })),
  }),
  // In sequence, so that every run gives the same log.
  concurrency: 1,
  lines: [
    {
      agent: UNLUCKY,
      hears: 'roll call',
      says: { error: { code: 'provider_auth', message: 'Incorrect API key provided' } },
      times: 1,
    },
  ],
};

export function playCrowd(stage: PageStage, id: string): Promise<void> {
  const everybody = Array.from({ length: CROWD_SIZE }, (_, n) => agentNumber(n + 1));
  return stage.play(id, everybody, 'This is a roll call.');
}

function agentNumber(n: number): string {
  return `agent-${String(n).padStart(2, '0')}`;
}
