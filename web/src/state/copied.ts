import type { TurnView } from '../../../src/library/projection/model.ts';
import { live } from './live.ts';

/** Where a copied turn of a fork ran: the same turn in the original conversation. */
export interface Original {
  conversation: string;
  turn: string;
  /** Seq of the last copied event. */
  seq: number;
}

/**
 * The turn that stands in the original where the first turn of an agent after a fork stands here; null for other turns. The agent
 * may not have gone on there.
 */
export function counterpartOf({ id, agent, number, from }: TurnView): string | null {
  const { origin, turns } = live.value ?? {};
  const isFirst = !turns?.some(
    (one) => one.agent === agent && one.number < number && one.from > (origin?.seq ?? 0),
  );
  return origin && from > origin.seq && isFirst ? inOriginal(id, origin.conversation) : null;
}

function inOriginal(turn: string, conversation: string): string {
  return turn.replace(/^.*(?=:[^:]+:\d+$)/, () => conversation);
}

/** Null for a turn that ran here, or that is older than the projection keeps. */
export function originalOf(turn: string | null): Original | null {
  const { origin, turns } = live.value ?? {};
  const from = turns?.find(({ id }) => id === turn)?.from;
  if (!origin || turn === null || from === undefined || from > origin.seq) return null;
  return { ...origin, turn: inOriginal(turn, origin.conversation) };
}
