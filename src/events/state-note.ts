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
}
