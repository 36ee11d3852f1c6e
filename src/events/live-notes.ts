import type { ActorAddress, TurnId } from './ids.ts';
import type { ToolOutcome } from './turn.ts';

/** A transition of an agent's machine, for live watchers. Never stored. */
export interface StateNote {
  /** The agent in its conversation. */
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

/** Where in a running turn something happens. It is provisional until the turn ends: then the log says what counts. */
export interface LivePlace {
  /** The agent in its conversation. */
  address: ActorAddress;
  /** Id of the turn. */
  turn: TurnId;
  /** A higher attempt voids all that earlier ones have told. */
  attempt: number;
  /** Counts the steps of the turn, from 1. */
  step: number;
  /** Counts the model calls of the attempt; 0 for tool calls that run before the first. A repeated one voids what earlier ones of its step have told. */
  round: number;
}

/** A piece of a reply in progress, for live watchers. Never stored. */
export interface StreamDelta extends LivePlace {
  /** Position of the piece in the text of its round, in characters. At 0 the text begins anew. */
  index: number;
  /** The words. */
  text: string;
}

/** How far a tool call has come. */
export interface ToolProgress {
  /** The words. */
  text?: string | undefined;
  /** Units done, of `total` if that is known. */
  done?: number | undefined;
  /** Units in all. */
  total?: number | undefined;
}

/** What happens in a turn besides its text. */
export type Activity =
  /** A piece of the model's reasoning. `index` as in a `StreamDelta`. */
  | { kind: 'reasoning'; index: number; text: string }
  /** A piece of the arguments of a call as the model writes them: JSON in the end. `index` counts within the call. */
  | { kind: 'arguments'; call: string; name: string; index: number; text: string }
  /** The model has ended its answer within a call. It does not run. */
  | { kind: 'dropped'; call: string; name: string }
  /** A call begins to run. Long arguments are cut. */
  | { kind: 'called'; call: string; name: string; args: string }
  | ({ kind: 'progress'; call: string; name: string } & ToolProgress)
  /** The result of a call. Long ones are cut. */
  | { kind: 'result'; call: string; name: string; outcome: ToolOutcome; text: string }
  /** What this round has told does not count: its model call failed. With `all`, what the whole attempt has told. */
  | { kind: 'void'; reason: string; all: boolean };

/** Something that happens in a running turn, for live watchers. Never stored. */
export type ActivityNote = LivePlace & Activity;

/** Of the moment, and never stored. */
export type LiveNote =
  | { type: 'delta'; delta: StreamDelta }
  | { type: 'activity'; activity: ActivityNote }
  | { type: 'state'; state: StateNote };

/** The agent that a note is about. */
export function addressOf(note: LiveNote): ActorAddress {
  switch (note.type) {
    case 'delta':
      return note.delta.address;
    case 'activity':
      return note.activity.address;
    case 'state':
      return note.state.address;
  }
}

/** Characters of its long texts. */
export function charsOf(note: LiveNote): number {
  if (note.type === 'state') return 0;
  if (note.type === 'delta') return note.delta.text.length;
  const { activity } = note;
  if (activity.kind === 'called') return activity.args.length;
  return 'text' in activity && activity.text !== undefined ? activity.text.length : 0;
}
