import type {
  AgentProfile,
  CompactionPolicy,
  Memories,
  ModelFacts,
  SummaryRequest,
  UsageAnchor,
  View,
} from '../../context/index.ts';
import {
  type ActorAddress,
  type AgentId,
  type ConversationId,
  type Event,
  type EventDraft,
  type NamedSession,
  type TenantId,
  type EventId,
  type ImageRef,
  type PinnedTurn,
  type OtherCalls,
  type OutgoingEvent,
  type PromptReceipt,
  type PromptRecord,
  type Reasoning,
  type CompactionReason,
  runtimeId,
  type Timer,
  type ToolCall,
  type TurnId,
  type Usage,
  type Author,
  type CommandOf,
} from '../../events/index.ts';
import type { ErrorCode } from '../../base/errors.ts';
import type { AgentEvent } from '../../machines/agent-lifecycle.ts';
import type { ModelEvent, ModelFailure, ModelRequest } from '../../providers/provider.ts';
import type { ActorPatch, ConversationKey, Store } from '../../store/store.ts';
import type { ParticipantsCache, ConversationDeps } from '../conversations/messages.ts';
import type { ImportedProgress } from '../actor/at-rest.ts';
import type { EngineDeps } from '../actor/engine-deps.ts';
import type { TurnWork, Checkpoints, Folded } from '../log/read-log.ts';
import type { Lease } from '../actor/lease.ts';
import type { FrozenBaseline, AgentRuntime } from '../actor/agent-runtime.ts';
import type { LiveActor } from '../actor/registry.ts';
import type { CallEnd } from './call-cost.ts';
import type {
  BudgetLine,
  Gate,
  ImportedSummary,
  Paid,
  PaidCall,
  SessionEvent,
  SummaryAnswer,
  RecordedCalls,
  AnswerSession,
  BegunAnswer,
  Sending,
  SessionRun,
  BudgetCaps,
  Schedule,
  Workflow,
} from './feature-types.ts';
import type { RepeatedCalls } from './repeated-calls.ts';
import type { TurnWatch } from './watch-turn.ts';
import type { Entry } from '../../queue/admission.ts';
import type { Clock } from '../../base/clock.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { Embedder } from '../../providers/embedder.ts';

/** The last failed try of one model call, and when the next one is due. */
export interface FailedCall extends ModelFailure {
  /** Tries of this call, from 1. */
  tries: number;
  /** Number of tries that the server answered. */
  answered: number;
  /** Time of the first failed try, ms since the epoch. */
  since: number;
  /** Since when the server has not answered, monotonic ms; null if it answers. */
  awayFrom: number | null;
  /** When the call is tried again; null if it is not. */
  wait: RetryWait | null;
}

interface RetryWait {
  ms: number;
  /** Time of the next try, ms since the epoch. */
  next: number;
  /** End of the wait for a server that does not answer; null if the number of tries decides instead. */
  until: number | null;
}

/**
 * One attempt at one pinned turn. It is lost with the process and restored from the journal.
 *  R1  A run is immutable. `changed` makes the next one.
 *  R2  An effect takes a run and returns an `Outcome`: the event for the machine, and the next run.
 *  R3  `meanwhile` is the exception: it has mutable facts that must survive an effect that throws or is aborted.
 */
export type TurnRun = TurnInputs & Readonly<StepState> & Readonly<TurnOutputs>;

/** Everything a turn depends on. */
export interface TurnDeps extends EngineDeps {
  /** Hooks of the features in use. */
  readonly features: Features;
}

/** An agent at work under its lease. */
export interface ActiveActor {
  readonly deps: TurnDeps;
  readonly lease: Lease;
  readonly runtime: AgentRuntime;
  readonly live: LiveActor;
}

/** Values that are fixed when the attempt begins. */
interface TurnInputs extends ActiveActor {
  readonly watch: TurnWatch;
  /** The slot of the turn, released while it waits for a server that does not answer. */
  readonly slot: TurnSlot;
  /** Whether an earlier attempt began the turn. Only then can it have a journal. */
  readonly resumed: boolean;
  readonly meanwhile: Meanwhile;
  /** If the turn repeats another: the recorded results of calls that are not made again. */
  readonly recorded: RecordedCalls | null;
}

interface StepState {
  /** The pinned turn, with the messages that have steered it. */
  turn: PinnedTurn;
  /** The baseline in force. A compaction may begin a new epoch in the middle of a turn. */
  baseline: FrozenBaseline;
  model: ModelFacts;
  /** The compaction policy, scaled to the window. */
  policy: CompactionPolicy;
  compaction: CompactionState;
  steer: SteerState;
  /** Whether the turn is being sealed: journalled calls are recorded, and no new ones are made. */
  givenUp: boolean;
  /** Index of the present step, from 0. */
  step: number;
  prompt: PromptRecord | null;
  answer: ModelAnswer | null;
  failure: FailedCall | null;
  /** The results of this turn's calls so far. */
  repeated: RepeatedCalls;
  /** Whether the agent was addressed meanwhile, so that this reply is not the last one on its task. */
  isAddressedAgain: boolean;
}

interface TurnOutputs {
  /** Events for the log of this conversation, in order. */
  outputs: readonly EventDraft[];
  /** Events for other logs. */
  outgoing: readonly OutgoingEvent[];
  timers: readonly Timer[];
  last: UsageAnchor | null;
  /** Whether the turn may end without words. */
  silent: boolean;
  ending: Ending;
}

/** Facts that an effect changes while it runs. They hold even if it throws: spent tokens, received text, running writes. */
interface Meanwhile {
  /**
   * Running writes: `turn.started` and receipts. A retry repeats them from the pinned turn, so a model call need not wait for
   * them. Its answer and the end of the turn wait.
   */
  writing: Promise<unknown>[];
  /** `receipts` are written with the commit. `answer` seems to end the turn, and is written only if the turn continues. */
  kept: {
    receipts: { receipt: PromptReceipt; at: number }[];
    answer: ModelAnswer | null;
  };
  /** The prompt whose receipt was written or is being written. */
  recorded: PromptRecord | null;
  /** The turn as last pinned. Messages that steered it count even if the effect that pinned it throws afterwards. */
  pinned: PinnedTurn;
  /** The journal key chosen for a step; see `step-journal.ts`. */
  key: { step: number; index: number } | null;
  session: SessionRun;
  /** The answer that the provider has begun; see `features/sessions/feature.ts`. */
  begun: BegunAnswer | null;
  /** `shown`: images of the last request, oldest first. `suspected`: images left out since a refusal. */
  images: { shown: readonly ShownImage[]; suspected: readonly ImageRef[] };
  partial: string;
  usage: Usage;
  /** Model calls that are not answers of steps. Absent if there were none. */
  others?: OtherCalls[];
  /** How much context work the turn may still do. */
  work: TurnWork;
  /** Number of model calls that this attempt began. */
  rounds: number;
}

/** An image of a request; `isNew` if no earlier turn of the agent has shown it. */
export interface ShownImage {
  image: ImageRef;
  isNew: boolean;
}

/** What an effect returns. */
export interface Outcome {
  /** The event for the machine. */
  event: AgentEvent;
  run: TurnRun;
}

type Appended = 'outputs' | 'outgoing' | 'timers';

/** The run with new values. `added` is appended to the outputs so far. */
export function changed(
  run: TurnRun,
  values: Partial<StepState & Omit<TurnOutputs, Appended>>,
  added: Partial<Pick<TurnOutputs, Appended>> = {},
): TurnRun {
  const { outputs = [], outgoing = [], timers = [] } = added;
  return {
    ...run,
    ...values,
    outputs: [...run.outputs, ...outputs],
    outgoing: [...run.outgoing, ...outgoing],
    timers: [...run.timers, ...timers],
  };
}

interface SteerState {
  /** The last step before which the log was read. */
  readonly step: number;
  readonly seen: number;
}

interface CompactionState {
  readonly step: number;
  readonly count: number;
  readonly tried: boolean;
  readonly reason: CompactionReason | null;
  /** Index of the last step whose journalled compactions were applied again after a crash. */
  readonly replayed: number;
  /** Whether the provider has refused this step's prompt as too long. */
  readonly overflowed: boolean;
}

export type Ending =
  | { kind: 'done' }
  | { kind: 'failed'; code: string; message: string }
  | { kind: 'aborted'; by: string };

/** A model's finished answer, as journalled. */
export interface ModelAnswer {
  text: string;
  /** The text as the model wrote it, if marks of Troupe were removed. */
  original?: string;
  calls: ToolCall[];
  reasoning?: Reasoning | undefined;
  stop: 'end' | 'calls' | 'length' | 'refusal';
  usage: Usage;
  /** Why the reported usage is not trusted. */
  doubt?: string;
  /** Why it is not a complete answer. */
  fault?: AnswerFault;
  /** Set if it was taken from the turn that this one repeats, without asking a model. */
  kept?: true;
  /** Set by providers with sessions. */
  session?: AnswerSession;
  /** Set for agents whose replies are data. */
  data?: unknown;
}

/**
 * What is wrong with an answer that ended normally. The same prompt would mostly get the same answer, so the model is told what
 * was wrong and asked again within its turn.
 */
export interface AnswerFault {
  /** Text for the model. Null: asking again cannot help. */
  note: string | null;
  /** Code and text for people, with which the turn fails if the fault is repeated. */
  code: ErrorCode;
  message: string;
  /** Set if the model may intend it: after one note to the model, such an answer counts. */
  isTaken?: true;
}

/** The journal entry of a step: its answer, or the ending of the turn. */
export type JournalEntry = ModelAnswer | { sealed: Ending };

/** Cache key of one agent in one conversation, for requests and sessions of any provider. */
export function cacheKeyOf({ live }: Pick<TurnRun, 'live'>): string {
  const { tenant, conversation, agent } = live.address;
  return `${tenant}/${conversation}/${agent}`;
}

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

/** Keeps a running write that the turn does not wait for yet. A failure is thrown where the turn waits for it. */
export function writeMeanwhile({ meanwhile }: Pick<TurnRun, 'meanwhile'>, record: Promise<unknown>): void {
  record.catch(() => undefined); // rethrown to the caller of `written`
  meanwhile.writing.push(record);
}

type Writing = Pick<TurnRun, 'deps' | 'live' | 'meanwhile'>;

/** Writes the receipts before the commit, so that people can see the prompt meanwhile. */
export function writeReceipts(run: Writing): void {
  const { receipts } = run.meanwhile.kept;
  run.meanwhile.kept.receipts = [];
  for (const { receipt, at } of receipts)
    writeMeanwhile(run, run.deps.store.putReceipt(run.live.address.tenant, receipt, at));
}

/** Waits for running writes, receipts included. */
export async function written(run: Writing): Promise<void> {
  writeReceipts(run);
  await Promise.all(run.meanwhile.writing);
  run.meanwhile.writing = [];
}

/**
 * Hooks of features that only some companies use. Each feature is one folder of `src/actors/features` with one object, and
 * one line in `features.ts` there.
 *  N1  The engine uses a feature only through these hooks. Only the list in `features.ts` imports its folder.
 *  N2  A turn calls a hook only if a fact that it already knows says so. Without the fact it executes no line of the feature.
 *  N3  Any feature may be missing. Turns then run as if nobody used it, and a command that needs it is refused.
 */
export interface Features {
  readonly schedules?: SchedulesFeature | undefined;
  readonly checkpoints?: CheckpointsFeature | undefined;
  readonly memory?: MemoryFeature | undefined;
  readonly reruns?: RerunsFeature | undefined;
  readonly sessions?: SessionsFeature | undefined;
  readonly steering?: SteeringFeature | undefined;
  readonly compaction?: CompactionFeature | undefined;
  readonly budget?: BudgetFeature | undefined;
  readonly supervision?: SupervisionFeature | undefined;
  readonly workflows?: WorkflowsFeature | undefined;
}

/** Messages at fixed times. Used if a schedule is defined. */
interface SchedulesFeature {
  /** Sends the messages that have become due since the last check. Called in each round of the sweeper. */
  fire(
    deps: Pick<EngineDeps, 'store' | 'log' | 'clock' | 'onWarning'>,
    participantsCache: ParticipantsCache,
  ): Promise<void>;
}

/** Stored folds of long logs. Used if the log has grown by `folds.least` events since the last stored ones. */
export interface CheckpointsFeature {
  readonly folds: Checkpoints;
  isWorthStoring(live: LiveActor, options?: { isBusy: boolean }): boolean;
  /** Copies the folds between two turns. Call the result once a write has proved that this process still has the lease. */
  keep(live: LiveActor, options: { isBusy: boolean }): Promise<(() => void) | null>;
  /** Folds of a conversation that is being imported. Null: it has other events, or its agents have former ids. */
  ofImport(deps: TurnDeps, log: ConversationKey): Promise<ImportFolds | null>;
  /** The newest stored folds of an actor up to `upTo`; null if there are none. */
  restore(
    address: ActorAddress,
    options: { secret: string; upTo?: number },
  ): Promise<(Pick<LiveActor, 'stored'> & { folded: Folded }) | null>;
  close(): Promise<void>;
}

/**
 * The folds that the first turn after an import begins with, made of the events while they are in memory: without them it reads the
 * whole log again.
 */
export interface ImportFolds {
  extend(progress: ImportedProgress): Promise<void>;
  store(): Promise<void>;
}

/** Retrieval of events that a summary covers. Used if the agent retrieves and its window has a summary. */
interface MemoryFeature {
  retrieve(
    deps: EngineDeps,
    turn: { address: ActorAddress; runtime: AgentRuntime; view: View; trigger: Event },
  ): Promise<Memories>;
  /** Builds and stores the index of the events up to `upTo`, which the agent's summary covers. */
  prepare(deps: EngineDeps, address: ActorAddress, upTo: number): Promise<void>;
  close(): Promise<void>;
}

/** Ended turns that are run again in a fork. Used if the pinned turn names the turn that it repeats. */
interface RerunsFeature {
  begin(turn: {
    deps: EngineDeps;
    live: Pick<LiveActor, 'address'>;
    runtime: AgentRuntime;
    turn: Pick<PinnedTurn, 'rerun'>;
  }): Promise<{ runtime: AgentRuntime; recorded: RecordedCalls } | null>;
}

/** Sessions that a provider keeps. Used if the provider resumes sessions or begun answers, or if an input names a session. */
interface SessionsFeature {
  namedIn(inputs: readonly Event[], agent: string): NamedSession | null;
  adopt(run: TurnRun): Promise<void>;
  ask(run: TurnRun): Sending;
  /** Adds the mark by which a provider resumes an answer that it has begun. */
  withBegun(run: TurnRun, request: ModelRequest): Promise<ModelRequest>;
  hear(run: TurnRun, event: SessionEvent): void;
  answered(
    run: TurnRun,
    sending: Sending,
    done: Extract<ModelEvent, { type: 'done' }>,
  ): { session?: AnswerSession };
  lose(run: TurnRun, message: string): void;
  /** Ends a turn that is still open in the provider. */
  leave(run: TurnRun): void;
  patch(run: TurnRun): Pick<NonNullable<ActorPatch['state']>, 'session' | 'cursor'>;
}

/** Messages that a running turn takes in. Used if the turn has more than one step, or has taken in events before. */
interface SteeringFeature {
  steer(run: TurnRun): Promise<TurnRun>;
  /** Adds the events that this step or all steps of a resumed turn have taken in. */
  showSteered(run: TurnRun, steps: 'this' | 'all'): Promise<TurnRun>;
  isInterrupted(run: TurnRun): Promise<boolean>;
  turnToInterrupt(
    deps: Pick<EngineDeps, 'store' | 'agents' | 'registry'>,
    address: ActorAddress,
    event: Event,
  ): Promise<TurnId | null>;
  /** Throws `agent_busy` if an addressed agent is at work and rejects messages while it is. */
  refuseBusy(
    deps: Pick<EngineDeps, 'store' | 'agents'>,
    log: ConversationKey,
    draft: EventDraft,
  ): Promise<void>;
}

/** Compaction of long histories. Used if the prompt has grown or a person asked for it. */
interface CompactionFeature {
  beginStep(run: TurnRun): TurnRun;
  /** `beginStep` for a resumed turn. Applies journalled compactions again. */
  replay(run: TurnRun): Promise<TurnRun>;
  /** The reason to compact before this prompt is sent. */
  reason(run: TurnRun, prompt: PromptRecord): CompactionReason | null;
  compact(run: TurnRun): Promise<Outcome>;
  askSummary(run: TurnRun, words: SummaryRequest, maxOutputTokens: number): Promise<SummaryAnswer>;
  /** Logs an imported summary. Returns false if it would hide other events. */
  recordSummary(
    deps: EngineDeps,
    log: ConversationKey,
    summary: ImportedSummary,
    made: { by: AgentId; at: number },
  ): Promise<boolean>;
}

/** Caps on the cost of model calls. Used if a cap is defined, and in every thread, because trees of tasks always have a cap. */
interface BudgetFeature {
  readonly hasCaps: boolean;
  /** Makes a model call if every budget allows it, and counts its cost. */
  pay<T>(run: TurnRun, call: PaidCall, make: () => Promise<{ outcome: T; end: CallEnd }>): Promise<Paid<T>>;
  report(
    tenant: TenantId,
    of: { root?: ConversationId | undefined; agent?: AgentId | undefined; now: number },
  ): Promise<BudgetLine[]>;
}

/** Checks before a turn may end. Used if the agent keeps a list of todos or must not stay silent. */
interface SupervisionFeature {
  /** Why the turn may not end yet; null if it may. */
  gate(run: TurnRun): Gate | null;
}

/** Workflows. Used if the conversation has a run. */
interface WorkflowsFeature {
  /** The events by which a turn that ends a step advances its runs. */
  advance(run: TurnRun): Promise<OutgoingEvent[]>;
}

/**
 * The slot of an activation under the caps of concurrent turns. A turn that waits for a model server that does not answer
 * holds none, so that other turns can run.
 */
export interface TurnSlot {
  /** Releases the slot until `regain`. Repeating it has no effect. Never throws. */
  leave(): Promise<void>;
  /** Waits until the slot is held again, or until the signal aborts. Never throws. */
  regain(signal: AbortSignal): Promise<void>;
}

/** Creates the slot of an activation. `entry`: the admission with which it began. */
export function createTurnSlot(
  { admission, clock }: Pick<EngineDeps, 'admission' | 'clock'>,
  { address, provider }: { address: ActorAddress; provider: string },
  entry: Extract<Entry, { kind: 'admitted' }>,
): TurnSlot {
  let held: typeof entry | null = entry;
  return {
    async leave() {
      const left = held;
      held = null;
      await left?.leave();
    },
    async regain(signal) {
      while (held === null && !signal.aborted) {
        const next = await admission.enter(address, provider);
        if (next.kind === 'admitted') held = next;
        else await clock.sleep(next.retryInMs, signal, 'pause');
      }
    },
  };
}

/** A feature that only some companies use: a folder of `src/actors/features` with one such object, listed in `features.ts`. */
export interface Feature {
  /** Returns its hooks in this process; none if no definition needs it. */
  open(parts: FeatureParts): Features;
  readonly commands?: FeatureCommands;
}

export interface FeatureParts {
  /** The store. */
  store: Store;
  /** Source of time. */
  clock: Clock;
  /** 0 <= n < 1. */
  random: () => number;
  /** Counters and times. */
  metrics: Metrics;
  /** Called with problems that no caller learns of. */
  onWarning: (error: unknown, where: string) => void;
  /** What stored folds depend on besides the log: former ids of agents. Folds of another version are not used. */
  version: string;
  /** Minimum number of events between two stored folds. Default: that of the feature. */
  foldEvery?: number | undefined;
  /** Budgets of the definition. */
  caps?: BudgetCaps;
  /** Schedules of the definition. */
  schedules?: readonly Schedule[];
  /** Embedder for searches in memories. Default: memories are searched by words only. */
  embedder?: Embedder | null;
  /** Maximum wait for the vector of a search, ms; see `MemorySearchDeps`. */
  deadlineMs?: number | undefined;
  /** Maximum wait for the first answer of an embedder, ms. */
  firstDeadlineMs?: number | undefined;
}

/** Commands that features execute. Without the feature they are refused. */
export interface FeatureCommands {
  /** Runs an ended turn again in a fork. */
  readonly rerun?: (
    conversations: ConversationDeps,
    tenant: TenantId,
    command: CommandOf<'rerun'>,
    by: Author,
  ) => Promise<Event>;
  readonly phase?: (
    conversations: ConversationDeps,
    log: ConversationKey,
    command: CommandOf<'phase'>,
    by: Author,
  ) => Promise<Event>;
  readonly run?: (
    conversations: ConversationDeps & { workflows: readonly Workflow[] },
    log: ConversationKey,
    command: CommandOf<'run'>,
    by: Author,
  ) => Promise<Event>;
}
