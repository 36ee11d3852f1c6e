import type { ActorAddress, TurnId } from './ids.ts';

/** A transition of an agent's machine, for live watchers. Never stored. */
export interface StateNote {
  address: ActorAddress;
  /** The running turn; null between turns. */
  turn: TurnId | null;
  /** Path of the new state, such as `working.streaming`. */
  state: string;
  /** The machine event that caused the transition, such as `MODEL_REPLIED`. */
  event: string;
  /** Ms since the epoch. */
  at: number;
  /** Names of the tools whose calls begin now. */
  doing: string[];
  /** In `backoff`: the error code of the failed model call, when the wait began and when the next attempt is due. */
  waits?: { code: string; since: number; next: number } | undefined;
}

/** A piece of a reply in progress, for live watchers. Never stored. */
export interface StreamDelta {
  address: ActorAddress;
  turn: TurnId;
  attempt: number;
  step: number;
  /** Rises within (turn, attempt, step). At 0, watchers drop the text of an earlier attempt. */
  index: number;
  text: string;
}
