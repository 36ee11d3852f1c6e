import type { PinnedTurn } from '../../events/index.ts';
import type { TurnInput } from '../../context/index.ts';

type Steered = Pick<PinnedTurn, 'upTo' | 'steered'>;

/** The seq up to which a turn has taken its inputs. */
export function reachOf({ upTo, steered }: Steered): number {
  return steered?.at(-1)?.upTo ?? upTo;
}

/** The reach of a turn at one step, whose prompt never has inputs taken later, even when it is rendered again. */
export function reachAt({ upTo, steered = [] }: Steered, step: number): number {
  return steered.findLast((each) => each.step <= step)?.upTo ?? upTo;
}

/** The seqs of all inputs of a turn, in the order in which it took them. */
export function coversOf({ inputs, steered = [] }: Pick<PinnedTurn, 'inputs' | 'steered'>): number[] {
  return [...inputs, ...steered.flatMap((each) => each.inputs)];
}

/** How a turn's prompts are rendered. They are pinned with the turn: a later setting must not change what was sent. */
export type PromptRules = Pick<TurnInput, 'peers' | 'framing'>;

/** The rules of an agent, or of a pinned or logged turn, without those that are absent. */
export function promptRulesOf({ peers, framing }: PromptRules): PromptRules {
  return { ...(peers && { peers }), ...(framing && { framing }) };
}
