import type { ActorAddress, TurnId } from './ids.ts';

/** That an agent's machine went from one state to another, for whoever watches; never stored. */
export interface StateNote {
  address: ActorAddress;
  /** In which it happened; null between turns. */
  turn: TurnId | null;
  /** State path after it, as `working.streaming`. */
  state: string;
  /** What caused it, as `MODEL_REPLIED`. */
  event: string;
  /** Ms since the epoch. */
  at: number;
  /** Names of the tools whose calls begin with it. */
  doing: string[];
  /** In `backoff`: which failure of a model call it waits out, since when, and when the next try is due. */
  waits?: { code: string; since: number; next: number } | undefined;
}

/** A piece of a reply as it is written, for whoever watches; never stored. */
export interface StreamDelta {
  address: ActorAddress;
  turn: TurnId;
  attempt: number;
  step: number;
  /** Rises within (turn, attempt, step); 0 tells watchers to drop what an earlier try said. */
  index: number;
  text: string;
}
