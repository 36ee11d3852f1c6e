import type { AgentProfile, ModelFacts, CompactionPolicy, UsageAnchor } from '../../context/index.ts';
import {
  type EventDraft,
  type EventId,
  type PinnedTurn,
  type OutgoingEvent,
  type PromptRecord,
  type Reasoning,
  type CompactionReason,
  runtimeId,
  type Timer,
  type ToolCall,
  type TurnId,
  type Usage,
} from '../../events/index.ts';
import type { AgentEvent } from '../../machines/agent-lifecycle.ts';
import type { ModelFailure } from '../../providers/provider.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import type { Lease } from '../engine/lease.ts';
import type { FrozenBaseline, AgentRuntime } from '../engine/agent-runtime.ts';
import type { LiveActor } from '../engine/registry.ts';
import type { RepeatedCalls } from './repeated-calls.ts';
import type { AnswerSession, Sending, SessionRun } from '../sessions/session-run.ts';
import type { TurnWatch } from './watch-turn.ts';

/** The last failed try of one model call, and when the next one is due. */
export interface FailedCall extends ModelFailure {
  /** Tries of this call, from 1. */
  tries: number;
  /** Tries that a server has answered. */
  answered: number;
  /** Time of the first failed try, ms since the epoch. */
  since: number;
  /** Start of the server's present absence, monotonic ms; null if it answers. */
  awayFrom: number | null;
  /** Null if the call is not tried again. */
  wait: RetryWait | null;
}

export interface RetryWait {
  ms: number;
  /** Time of the next try, ms since the epoch. */
  next: number;
  /** End of the wait for a server that is away; null if tries are counted instead. */
  until: number | null;
}

/**
 * One attempt at one pinned turn. It is lost with the process; the journal gives it back.
 *  R1  `TurnRun` is what effects and their helpers read. The compiler refuses to assign to it.
 *  R2  An effect returns an `Outcome`: the event for the machine and what has changed. The driver applies it.
 *  R3  `meanwhile` is the exception: facts that must survive an effect that throws or is aborted.
 *  R4  `MutableTurnRun` is for the driver, for the sealing of a turn, and for the effects that are not yet split: assemble,
 *      callModel, compact and commit.
 */
export type TurnRun = TurnInputs & Readonly<StepState> & Readonly<TurnOutputs>;

export type MutableTurnRun = TurnInputs & StepState & TurnOutputs;

/** Fixed when the attempt begins. */
export interface TurnInputs {
  readonly deps: EngineDeps;
  readonly lease: Lease;
  readonly runtime: AgentRuntime;
  readonly live: LiveActor;
  readonly watch: TurnWatch;
  /** True if the turn was begun before. Only then can it have a journal. */
  readonly resumed: boolean;
  readonly meanwhile: Meanwhile;
}

/** Where the turn stands. */
export interface StepState {
  /** As pinned, with the messages that have steered it. */
  turn: PinnedTurn;
  /** The baseline in force. A compaction begins a new epoch in the middle of a turn. */
  baseline: FrozenBaseline;
  /** What is known of the model: its window, and how it counts. */
  model: ModelFacts;
  /** Scaled to the window. */
  policy: CompactionPolicy;
  compaction: CompactionState;
  session: SessionRun;
  steer: SteerState;
  /** The turn is being ended: what was done is recorded, and nothing more is done. */
  givenUp: boolean;
  /** Index of the present step, from 0. */
  step: number;
  prompt: PromptRecord | null;
  /** The part of the prompt that is sent: all of it, or what a session has not seen. */
  sending: Sending | null;
  /** The prompt whose receipt is written. */
  recorded: PromptRecord | null;
  answer: ModelAnswer | null;
  failure: FailedCall | null;
  /** The results that the calls of this turn have given. */
  repeated: RepeatedCalls;
  /** Somebody spoke to the agent meanwhile, so its reply is not the last word on its task. */
  isAddressedAgain: boolean;
}

/** What the commit writes. */
export interface TurnOutputs {
  /** Events for the log of this conversation, in order. */
  outputs: readonly EventDraft[];
  /** Events for other logs. */
  posts: readonly OutgoingEvent[];
  timers: readonly Timer[];
  /** What was counted and reported for the last call. */
  last: UsageAnchor | null;
  /** The turn may end without words. */
  silent: boolean;
  ending: Ending;
}

/** Changes in the middle of an effect: tokens are spent, words are heard and records are on their way even if it throws. */
export interface Meanwhile {
  /**
   * Records on their way into the store: `turn.started` and receipts. A retry writes them again from the pinned turn, so a
   * call does not wait for them; an answer and the end of the turn do.
   */
  writing: Promise<unknown>[];
  /** Text of a model call that broke off. */
  partial: string;
  usage: Usage;
}

/** What an effect has done. */
export interface Outcome {
  event: AgentEvent;
  /** Fields with a new value. */
  changes?: Partial<StepState & Omit<TurnOutputs, 'outputs' | 'posts' | 'timers'>>;
  /** Appended to what the turn has so far. */
  added?: Partial<Pick<TurnOutputs, 'outputs' | 'posts' | 'timers'>>;
}

/** Applies what an effect has done, and returns the event for the machine. */
export function applyOutcome(run: MutableTurnRun, { event, changes, added }: Outcome): AgentEvent {
  Object.assign(run, changes);
  if (added?.outputs) run.outputs = [...run.outputs, ...added.outputs];
  if (added?.posts) run.posts = [...run.posts, ...added.posts];
  if (added?.timers) run.timers = [...run.timers, ...added.timers];
  return event;
}

/** How far the log beyond the turn was read. */
export interface SteerState {
  /** The last step before which the log was read. */
  step: number;
  seen: number;
  /** The journal key of the present step. */
  key: { step: number; index: number } | null;
}

/** Compactions in the present step. */
export interface CompactionState {
  step: number;
  /** Compactions applied. */
  count: number;
  /** Whether one was tried, with or without success. */
  tried: boolean;
  /** The reason for the compaction that is due. */
  reason: CompactionReason | null;
  /** The last step whose journalled compactions were applied again after a crash. */
  replayed: number;
  /** Whether the provider has refused this step's prompt as too long. */
  overflowed: boolean;
}

export type Ending =
  | { kind: 'done' }
  | { kind: 'failed'; code: string; message: string }
  | { kind: 'aborted'; by: string };

/** A model's finished answer, as journalled. */
export interface ModelAnswer {
  text: string;
  calls: ToolCall[];
  reasoning?: Reasoning | undefined;
  stop: 'end' | 'calls' | 'length' | 'refusal';
  usage: Usage;
  /** Why the reported usage is not believed. */
  doubt?: string;
  /** Set by providers with sessions. */
  session?: AnswerSession;
  /** Set for agents whose replies are data. */
  data?: unknown;
}

/** The journal entry of a step: its answer, or the ending of the turn. */
export type JournalEntry = ModelAnswer | { sealed: Ending };

/** The journal key of a step's answer. */
export function journalKey(turn: TurnId, step: number): string {
  return `${turn}/${step}`;
}

export function ownDraft(
  run: TurnRun,
  part: string,
): { id: EventId; author: { kind: 'agent'; id: string; name: string }; to: []; turn: PinnedTurn['id'] } {
  const { id, name }: AgentProfile = run.runtime.profile;
  return {
    id: runtimeId(run.turn.id, part),
    author: { kind: 'agent', id, name },
    to: [],
    turn: run.turn.id,
  };
}

/** Writes a record while the turn goes on. A failure is thrown where the turn waits for it. */
export function writeMeanwhile({ meanwhile }: Pick<TurnRun, 'meanwhile'>, record: Promise<unknown>): void {
  record.catch(() => undefined); // thrown to whoever awaits `written`
  meanwhile.writing.push(record);
}

export async function written({ meanwhile }: Pick<TurnRun, 'meanwhile'>): Promise<void> {
  await Promise.all(meanwhile.writing);
  meanwhile.writing = [];
}
