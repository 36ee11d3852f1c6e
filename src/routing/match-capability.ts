import type { AgentId } from '../events/index.ts';

/** What is known of what an agent is good at. */
export interface Candidate {
  id: AgentId;
  role: string;
  description: string;
  capabilities?: readonly string[] | undefined;
}

/** A word in `capabilities` says more than one in a description. */
const CAPABILITY = 3;
const DESCRIPTION = 1;
/** Words that begin alike count as one: translate, translation. */
const STEM = 6;
const SHORTEST = 3;
const COMMON = new Set(
  'and any are but can could for from has have how into its not now our out please some that the then there this was what when where which who why will with would you your'.split(
    ' ',
  ),
);

/** The agent with the most of the words of a text, the first of equals; none where nobody has one. */
export function bestByCapability(text: string, agents: readonly Candidate[]): AgentId[] {
  const asked = wordsOf(text);
  let best: AgentId | null = null;
  let most = 0;
  for (const agent of agents) {
    const score = scoreOf(asked, agent);
    if (score > most) [best, most] = [agent.id, score];
  }
  return best === null ? [] : [best];
}

function scoreOf(
  asked: ReadonlySet<string>,
  { id, role, description, capabilities = [] }: Candidate,
): number {
  const able = wordsOf(capabilities.join(' '));
  const described = wordsOf(`${id} ${role} ${description}`);
  let score = 0;
  for (const word of asked) score += able.has(word) ? CAPABILITY : described.has(word) ? DESCRIPTION : 0;
  return score;
}

function wordsOf(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const telling = words.filter((word) => word.length >= SHORTEST && !COMMON.has(word));
  return new Set(telling.map((word) => word.slice(0, STEM)));
}
