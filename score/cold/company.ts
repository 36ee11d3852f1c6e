import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../src/library/troupe.ts';

/** Tokens of the window: some 600 messages of the made-up log. */
const WINDOW = 128_000;
export const CONVERSATION = 'long';
export const AGENTS = ['planner', 'coder'] as const;

const COMPANY: TroupeInput = {
  agents: AGENTS.map((id) => ({
    id,
    instructions: 'Answer in one sentence.',
    provider: 'scripted' as const,
    contextWindow: WINDOW,
    maxOutputTokens: 4_000,
    script: { rules: [{ reply: 'Answer {{n}}: the next part is in src/part-{{n}}.ts.' }] },
  })),
  context: { summaries: 'extract' },
};

export function openCompany(data: string, metrics?: Parameters<typeof createTroupe>[1]): Promise<Troupe> {
  return createTroupe(COMPANY, { data, ...metrics });
}

const WORDS =
  'the agent reads a file and says what it has found in it so that others can go on from there'.split(' ');

/** A made-up text; no two are equal. */
export function textOf(number: number, words: number): string {
  const picked = Array.from(
    { length: words },
    (_, at) => WORDS[(number * 7 + at * (1 + (number % 5))) % WORDS.length],
  );
  return `Note ${number}: ${picked.join(' ')}.`;
}
