import type { Event } from './event.ts';
import type { ActorAddress, TurnId } from './ids.ts';
import type { ToolOutcome } from './turn.ts';

/** Where in a running turn something happens: of which agent in which conversation, and how far in. */
export interface LivePlace extends ActorAddress {
  /** Id of the turn. */
  turn: TurnId;
  /** Number of the attempt at the turn, from 1. A new attempt voids the notes of all earlier ones. */
  attempt: number;
  /** Number of the step in the turn, from 1. Each step is one answer of the model; the last one is the reply. */
  step: number;
  /** Number of the model call in the attempt, from 1; 0: before the first. A repeated call voids its step's earlier notes. */
  round: number;
}

/** A piece of a text in progress. */
interface Piece extends LivePlace {
  /** Position of the piece in its text, in characters. 0: the text begins, or starts over. */
  index: number;
  /** The words. */
  text: string;
}

/** About a tool call. */
interface OfCall extends LivePlace {
  /** Id of the call. */
  call: string;
  /** Name of the tool. */
  name: string;
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

/** Part of an answer as the model writes it. The parts of a round, joined, are the text of its step or the reply. */
export interface TextNote extends Piece {
  type: 'text';
}

/** A piece of the model's reasoning. Its positions are counted separately. */
export interface ReasoningNote extends Piece {
  type: 'reasoning';
}

/** A piece of the arguments of a call as the model writes them. Joined, they are JSON. Positions count within the call. */
export interface ArgumentsNote extends OfCall, Piece {
  type: 'arguments';
}

/** The model ended its answer within this call, so the call does not run. */
export interface DroppedNote extends OfCall {
  type: 'dropped';
}

/** A call begins to run. */
export interface CalledNote extends OfCall {
  type: 'called';
  /** Its whole arguments. Long ones are cut. */
  args: string;
}

/** How far a running call has come, as its tool reports with `context.progress`. */
export interface ProgressNote extends OfCall, ToolProgress {
  type: 'progress';
}

/** The result of a call. The event `tool.result` follows with the step. */
export interface ResultNote extends OfCall {
  type: 'result';
  /** Whether it has succeeded. */
  outcome: ToolOutcome;
  /** The result as the model reads it. Long ones are cut. */
  text: string;
}

/** Withdraws the notes of this round, because its model call failed. With `all`, those of the whole attempt. */
export interface VoidNote extends LivePlace {
  type: 'void';
  /** Why, for people. */
  reason: string;
  /** Whether it voids the whole attempt. */
  all: boolean;
}

/** A transition of an agent's machine. */
export interface StateNote extends ActorAddress {
  type: 'state';
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

/** A note of a tool call. */
export type CallNote = ArgumentsNote | DroppedNote | CalledNote | ProgressNote | ResultNote;

/** A note of what happens within a running turn. */
export type TurnNote = TextNote | ReasoningNote | CallNote | VoidNote;

/**
 * What happens in running turns: the one format from the engine, across all processes, to every watcher. A text begins
 * with its piece at 0, grows by pieces and ends when another note of its step comes; so do the arguments of a call,
 * which then runs or is dropped. `void` withdraws notes. Notes are never stored and are provisional: when the turn
 * ends, its events replace them.
 */
export type LiveNote = TurnNote | StateNote;

/** What watchers receive: events, which are in the log, and notes of what happens meanwhile. */
export type Note = { type: 'event'; event: Event } | LiveNote;

/** A note of a turn without its place, which all of them have. */
export type Told = TurnNote extends infer N ? (N extends TurnNote ? Omit<N, keyof LivePlace> : never) : never;

/** Key of the text that a piece belongs to, within its agent. */
export function keyOfText({ turn, attempt, step, round, ...note }: TurnNote): string {
  return `${note.type} ${turn} ${attempt} ${step} ${round} ${'call' in note ? note.call : ''}`;
}

/** Key of a call within its turn. It includes the step, because some servers number calls anew in each answer. */
export function keyOfCall({ step, call }: CallNote): string {
  return `${step} ${call}`;
}

/** Number of characters of its long texts. */
export function charsOf(note: LiveNote): number {
  if (note.type === 'called') return note.args.length;
  return 'text' in note && note.text !== undefined ? note.text.length : 0;
}
