import type { TurnInput } from '../../context/index.ts';

/** How a turn's prompts are rendered. They are pinned with the turn: a later setting must not change what was sent. */
export type PromptRules = Pick<TurnInput, 'peers' | 'framing'>;

/** The rules of an agent, or of a pinned or logged turn, without those that are absent. */
export function promptRulesOf({ peers, framing }: PromptRules): PromptRules {
  return { ...(peers && { peers }), ...(framing && { framing }) };
}
