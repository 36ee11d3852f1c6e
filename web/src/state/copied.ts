import { live } from './live.ts';

/** Where a copied turn of a fork ran: the same turn in the original conversation. */
export interface Original {
  conversation: string;
  turn: string;
  /** Seq of the last copied event. */
  seq: number;
}

/** Null for a turn that ran here, or that is older than the projection keeps. */
export function originalOf(turn: string | null): Original | null {
  const { origin, turns } = live.value ?? {};
  const from = turns?.find(({ id }) => id === turn)?.from;
  if (!origin || turn === null || from === undefined || from > origin.seq) return null;
  return { ...origin, turn: turn.replace(/^.*(?=:[^:]+:\d+$)/, () => origin.conversation) };
}
