import { type AgentProfile, RENDERING, type TurnInput } from '../../context/index.ts';

/** How a turn's prompts are rendered. They are pinned with the turn: a later setting must not change what was sent. */
export type PromptRules = Pick<TurnInput, 'rendering' | 'peers' | 'framing'>;

/** The rules of a pinned or logged turn, without those that are absent. */
export function promptRulesOf({ rendering, peers, framing }: PromptRules): PromptRules {
  return {
    ...(rendering !== undefined && { rendering }),
    ...(peers && { peers }),
    ...(framing && { framing }),
  };
}

/** The rules of a new turn of this agent. */
export function promptRulesFor({ peers, framing }: Pick<AgentProfile, 'peers' | 'framing'>): PromptRules {
  return promptRulesOf({ rendering: RENDERING, peers, framing });
}
