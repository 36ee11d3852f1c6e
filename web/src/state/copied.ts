import { live } from './live.ts';

/** Where a turn of a fork was taken: the same turn of the conversation that it was copied from. */
export interface Original {
  conversation: string;
  turn: string;
  /** The last event that was copied. */
  seq: number;
}

/** Null for a turn that was taken here, or that is older than what is kept of the conversation. */
export function originalOf(turn: string | null): Original | null {
  const { origin, turns } = live.value ?? {};
  const from = turns?.find(({ id }) => id === turn)?.from;
  if (!origin || turn === null || from === undefined || from > origin.seq) return null;
  return { ...origin, turn: turn.replace(/^.*(?=:[^:]+:\d+$)/, () => origin.conversation) };
}
