import type { PinnedTurn } from '../../events/index.ts';

type Steered = Pick<PinnedTurn, 'upTo' | 'steered'>;

/** Up to where of the log a turn has taken its inputs. */
export function reachOf({ upTo, steered }: Steered): number {
  return steered?.at(-1)?.upTo ?? upTo;
}

/** The same for one step: what was taken in later is not in its prompt, also where it is rendered again. */
export function reachAt({ upTo, steered = [] }: Steered, step: number): number {
  return steered.findLast((each) => each.step <= step)?.upTo ?? upTo;
}

/** All that a turn answers, as it took it in. */
export function coversOf({ inputs, steered = [] }: Pick<PinnedTurn, 'inputs' | 'steered'>): number[] {
  return [...inputs, ...steered.flatMap((each) => each.inputs)];
}
