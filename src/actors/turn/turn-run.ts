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
import type { ModelFailure } from '../../providers/provider.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import type { Lease } from '../engine/lease.ts';
import type { FrozenBaseline, AgentRuntime } from '../engine/agent-runtime.ts';
import type { LiveActor } from '../engine/registry.ts';
import type { RepeatedCalls } from './repeated-calls.ts';
import type { AnswerSession, Sending, SessionRun } from '../sessions/session-run.ts';
import type { TurnWatch } from './watch-turn.ts';

/** The last of the failed tries of one model call, and when the next one is due. */
export interface FailedCall extends ModelFailure {
  /** Of this call, from 1. */
  tries: number;
  /** How many of them a server has answered: the others found nobody. */
  answered: number;
  /** When the first of them failed; ms since the epoch. */
  since: number;
  /** Monotonic: since when its server has been away without a break; null where it is not. */
  awayFrom: number | null;
  /** Null: it is not tried again. */
  wait: RetryWait | null;
}

export interface RetryWait {
  ms: number;
  /** When the next try is due; ms since the epoch. */
  next: number;
  /** Until when a server that is away is waited for; null where tries are counted instead. */
  until: number | null;
}

/** One attempt at one pinned turn: what the effects share. Lost with the process; the journal gives it back. */
export interface TurnRun {
  readonly deps: EngineDeps;
  readonly lease: Lease;
  readonly runtime: AgentRuntime;
  readonly live: LiveActor;
  /** As pinned; what steers it is pinned too. */
  turn: PinnedTurn;
  /** In force: a relief begins a new epoch in the middle of a turn. */
  baseline: FrozenBaseline;
  /** What is known of the model: its window, and how it counts. */
  model: ModelFacts;
  /** As scaled to the window. */
  policy: CompactionPolicy;
  compaction: CompactionState;
  session: SessionRun;
  steer: SteerState;
  readonly watch: TurnWatch;
  /** Whether somebody began this turn before: only then can there be a journal. */
  readonly resumed: boolean;
  /** It ends: what was done is recorded, and nothing more is done. */
  givenUp: boolean;
  /**
   * Records on their way into the store while the model is called: `turn.started`, receipts. Both follow from the pinned
   * turn and are written again by a retry, so a call need not wait for them; an answer and the end of the turn do.
   */
  writing: Promise<unknown>[];
  /** Index of the present step, from 0. */
  step: number;
  prompt: PromptRecord | null;
  /** What is sent of it: all, or what a session has not seen. */
  sending: Sending | null;
  /** The prompt whose receipt is written. */
  recorded: PromptRecord | null;
  /** What was counted and reported for the last call. */
  last: UsageAnchor | null;
  answer: ModelAnswer | null;
  failure: FailedCall | null;
  /** Text of a model call that broke off. */
  partial: string;
  usage: Usage;
  /** What this turn has for the log so far, in order. */
  outputs: EventDraft[];
  /** What it has for the logs of others, and for later. */
  posts: OutgoingEvent[];
  timers: Timer[];
  /** Which results its calls have given. */
  repeated: RepeatedCalls;
  /** It may end without words. */
  silent: boolean;
  /** Whether somebody spoke to the agent meanwhile: then its words are not the last ones on its task. */
  isAddressedAgain: boolean;
  ending: Ending;
}

/** How far the log beyond the turn was looked at. */
export interface SteerState {
  /** The last step before which it was. */
  step: number;
  seen: number;
  /** Under which of its keys a step is journalled. */
  key: { step: number; index: number } | null;
}

/** How the view was relieved in the present step. */
export interface CompactionState {
  step: number;
  /** Rewrites carried out. */
  count: number;
  /** Whether a relief was tried, with or without success. */
  tried: boolean;
  /** Why one is wanted now. */
  reason: CompactionReason | null;
  /** The last step for which the journal was asked what had been decided before a crash. */
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
  /** Why what was said of the usage is not believed. */
  doubt?: string;
  /** Of a provider that remembers. */
  session?: AnswerSession;
  /** Of an agent whose replies are data. */
  data?: unknown;
}

/** What stands in the journal for a step: its answer, or that the turn ends without one. */
export type JournalEntry = ModelAnswer | { sealed: Ending };

/** Where the answer of a step is journalled. */
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

/** Lets a record be written while the turn goes on; a failure shows where the turn waits for it. */
export function writeMeanwhile(run: Pick<TurnRun, 'writing'>, record: Promise<unknown>): void {
  record.catch(() => undefined); // seen by whoever awaits `written`
  run.writing.push(record);
}

export async function written(run: TurnRun): Promise<void> {
  await Promise.all(run.writing);
  run.writing = [];
}
