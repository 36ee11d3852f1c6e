import type { ActorAddress, TurnId } from './ids.ts';

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
