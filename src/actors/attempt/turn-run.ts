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
  /** Tries that a server has answered. */
  answered: number;
  /** Time of the first failed try, ms since the epoch. */
  since: number;
  /** Start of the server's present absence, monotonic ms; null if it answers. */
  awayFrom: number | null;
  /** Null if the call is not tried again. */
  wait: RetryWait | null;
}

interface RetryWait {
  ms: number;
  /** Time of the next try, ms since the epoch. */
  next: number;
  /** End of the wait for a server that is away; null if tries are counted instead. */
  until: number | null;
}

/**
 * One attempt at one pinned turn. It is lost with the process and restored from the journal.
 *  R1  A run is never assigned to. `changed` makes the next one.
 *  R2  An effect takes a run and returns an `Outcome`: the event for the machine, and the next run.
 *  R3  `meanwhile` is the exception: facts that must survive an effect that throws or is aborted.
 */
export type TurnRun = TurnInputs & Readonly<StepState> & Readonly<TurnOutputs>;

/** Everything a turn depends on. */
export interface TurnDeps extends EngineDeps {
  /** What only some companies use. */
  readonly features: Features;
}

/** An agent at work under its lease. */
export interface ActiveActor {
  readonly deps: TurnDeps;
  readonly lease: Lease;
  readonly runtime: AgentRuntime;
  readonly live: LiveActor;
}

/** Fixed when the attempt begins. */
interface TurnInputs extends ActiveActor {
  readonly watch: TurnWatch;
  /** Left while the turn waits for a server that is away. */
  readonly slot: TurnSlot;
  /** True if the turn was begun before. Only then can it have a journal. */
  readonly resumed: boolean;
  readonly meanwhile: Meanwhile;
  /** Results of calls that are not made, if the turn repeats another. */
  readonly recorded: RecordedCalls | null;
}

/** Where the turn stands. */
interface StepState {
  /** As pinned, with the messages that have steered it. */
  turn: PinnedTurn;
  /** The baseline in force. A compaction begins a new epoch in the middle of a turn. */
  baseline: FrozenBaseline;
  /** Learnt facts about the model: its window, and how it counts tokens. */
  model: ModelFacts;
  /** The compaction policy, scaled to the window. */
  policy: CompactionPolicy;
  compaction: CompactionState;
  steer: SteerState;
  /** The turn is being sealed: journalled calls are recorded, and no new ones are made. */
  givenUp: boolean;
  /** Index of the present step, from 0. */
  step: number;
  prompt: PromptRecord | null;
  answer: ModelAnswer | null;
  failure: FailedCall | null;
  /** The results that the calls of this turn have given. */
  repeated: RepeatedCalls;
  /** The agent was addressed meanwhile, so its reply is not the last word on its task. */
  isAddressedAgain: boolean;
}

/** What the commit writes. */
interface TurnOutputs {
  /** Events for the log of this conversation, in order. */
  outputs: readonly EventDraft[];
  /** Events for other logs. */
  outgoing: readonly OutgoingEvent[];
  timers: readonly Timer[];
  /** Counted and reported tokens of the last call. */
  last: UsageAnchor | null;
  /** The turn may end without words. */
  silent: boolean;
  ending: Ending;
}

/** Facts that an effect changes while it runs: even if it throws, tokens are spent, text has come and writes are under way. */
interface Meanwhile {
  /**
   * Writes under way: `turn.started` and receipts. A retry repeats them from the pinned turn, so a model call does not wait
   * for them; its answer and the end of the turn do.
   */
  writing: Promise<unknown>[];
  /** Written with the commit: receipts. Not at all, unless the turn goes on: the answer that ends it. */
  kept: {
    receipts: { receipt: PromptReceipt; at: number }[];
    answer: ModelAnswer | null;
  };
  /** The prompt whose receipt is written or being written. */
  recorded: PromptRecord | null;
  /** The turn as last pinned. What has steered it counts even if the effect that pinned it throws afterwards. */
  pinned: PinnedTurn;
  /** The journal key chosen for a step; see `step-journal.ts`. */
  key: { step: number; index: number } | null;
  session: SessionRun;
  /** The answer that the provider has begun; see `begun-answer.ts`. */
  begun: BegunAnswer | null;
  /** Images of the last request, the oldest first, and those left out since a refusal. */
  images: { shown: readonly ShownImage[]; suspected: readonly ImageRef[] };
  /** Text of a model call that broke off. */
  partial: string;
  usage: Usage;
  /** Calls beside the answers of the steps. Absent: none so far. */
  others?: OtherCalls[];
  /** What its work on the context may still cost. */
  work: TurnWork;
  /** Model calls of this attempt that were begun. */
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

/** The run with new values. `added` is appended to what the turn has so far. */
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

/** How far the log beyond the turn was read. */
interface SteerState {
  /** The last step before which the log was read. */
  readonly step: number;
  readonly seen: number;
}

/** Compactions in the present step. */
interface CompactionState {
  readonly step: number;
  /** Compactions applied. */
  readonly count: number;
  /** Whether one was tried, with or without success. */
  readonly tried: boolean;
  /** The reason for the compaction that is due. */
  readonly reason: CompactionReason | null;
  /** The last step whose journalled compactions were applied again after a crash. */
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
  /** The words as the model wrote them, if marks of Troupe were taken away. */
  original?: string;
  calls: ToolCall[];
  reasoning?: Reasoning | undefined;
  stop: 'end' | 'calls' | 'length' | 'refusal';
  usage: Usage;
  /** Why the reported usage is not trusted. */
  doubt?: string;
  /** Why it is no answer, or not all of one. */
  fault?: AnswerFault;
  /** Taken from the turn that this one repeats: no model was asked. */
  kept?: true;
  /** Set by providers with sessions. */
  session?: AnswerSession;
  /** Set for agents whose replies are data. */
  data?: unknown;
}

/**
 * What is wrong with an answer that came to its end. The same prompt would mostly be answered alike, so the model is told what was
 * wrong and asked again within its turn.
 */
export interface AnswerFault {
  /** For the model. Null: asking again cannot help. */
  note: string | null;
  /** For people, and how the turn fails if the model goes on like this. */
  code: ErrorCode;
  message: string;
  /** The model may mean it: told once, its answer counts. */
  isTaken?: true;
}

/** The journal entry of a step: its answer, or the ending of the turn. */
export type JournalEntry = ModelAnswer | { sealed: Ending };

/** Key of one agent in one conversation, for requests and sessions at any provider. */
export function cacheKeyOf({ live }: Pick<TurnRun, 'live'>): string {
  const { tenant, conversation, agent } = live.address;
  return `${tenant}/${conversation}/${agent}`;
}

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
  record.catch(() => undefined); // rethrown to the caller of `written`
  meanwhile.writing.push(record);
}

type Writing = Pick<TurnRun, 'deps' | 'live' | 'meanwhile'>;

/** Writes the receipts before the step or the turn is over, for whoever wants to look. */
export function writeReceipts(run: Writing): void {
  const { receipts } = run.meanwhile.kept;
  run.meanwhile.kept.receipts = [];
  for (const { receipt, at } of receipts)
    writeMeanwhile(run, run.deps.store.putReceipt(run.live.address.tenant, receipt, at));
}

/** Waits for what is being written, receipts included. */
export async function written(run: Writing): Promise<void> {
  writeReceipts(run);
  await Promise.all(run.meanwhile.writing);
  run.meanwhile.writing = [];
}

/**
 * What only some companies use. Each is one folder of `src/actors` with one object, and one line in `actors/features/features.ts`.
 *  N1  Everything else reaches a feature through these hooks alone; only the list imports its folder.
 *  N2  A turn comes to a hook by a fact that it has at hand. Without the fact it executes no line of the feature.
 *  N3  Each may be missing. Turns then go on as if nobody used it, and a command that needs it is refused.
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

/** Messages at fixed times. Fact: a schedule is defined. */
interface SchedulesFeature {
  /** Sends what has come due since the last check, in a round of the sweeper. */
  fire(
    deps: Pick<EngineDeps, 'store' | 'log' | 'clock' | 'onWarning'>,
    participantsCache: ParticipantsCache,
  ): Promise<void>;
}

/** Stored folds of long logs. Fact: the log has grown by `folds.least` events since the last ones. */
export interface CheckpointsFeature {
  readonly folds: Checkpoints;
  isWorthStoring(live: LiveActor, options?: { isBusy: boolean }): boolean;
  /** Copies the folds between two turns. Call the result once the fence has proved that they are this actor's. */
  keep(live: LiveActor, options: { isBusy: boolean }): Promise<(() => void) | null>;
  /** The newest stored folds of an actor up to `upTo`; null if there are none. */
  restore(
    address: ActorAddress,
    options: { secret: string; upTo?: number },
  ): Promise<(Pick<LiveActor, 'stored'> & { folded: Folded }) | null>;
  close(): Promise<void>;
}

/** What an agent's summary covers, found again. Fact: the agent retrieves, and its window has a summary. */
interface MemoryFeature {
  retrieve(
    deps: EngineDeps,
    turn: { address: ActorAddress; runtime: AgentRuntime; view: View; trigger: Event },
  ): Promise<Memories>;
  close(): Promise<void>;
}

/** Ended turns that are run again, in a fork. Fact: the pinned turn names the one that it repeats. */
interface RerunsFeature {
  /** What is different for such a turn. */
  begin(turn: {
    deps: EngineDeps;
    live: Pick<LiveActor, 'address'>;
    runtime: AgentRuntime;
    turn: Pick<PinnedTurn, 'rerun'>;
  }): Promise<{ runtime: AgentRuntime; recorded: RecordedCalls } | null>;
}

/** Conversations that a provider keeps. Fact: the provider resumes sessions, or joins answers, or an input names a session. */
interface SessionsFeature {
  /** The session that the inputs of a turn name for an agent. */
  namedIn(inputs: readonly Event[], agent: string): NamedSession | null;
  /** Makes the named session the agent's own. */
  adopt(run: TurnRun): Promise<void>;
  /** What is sent of the prompt. */
  ask(run: TurnRun): Sending;
  /** Marks with which a provider joins an answer again that it has begun. */
  withBegun(run: TurnRun, request: ModelRequest): Promise<ModelRequest>;
  hear(run: TurnRun, event: SessionEvent): void;
  answered(
    run: TurnRun,
    sending: Sending,
    done: Extract<ModelEvent, { type: 'done' }>,
  ): { session?: AnswerSession };
  lose(run: TurnRun, message: string): void;
  /** Leaves an open turn in the provider. */
  leave(run: TurnRun): void;
  /** The fields of the commit. */
  patch(run: TurnRun): Pick<NonNullable<ActorPatch['state']>, 'session' | 'cursor'>;
}

/** Messages that need not wait for the turn under way. Fact: the turn has more than one step, or took events in before. */
interface SteeringFeature {
  steer(run: TurnRun): Promise<TurnRun>;
  /** Adds the events that this step, or all steps, of a resumed turn took. */
  showSteered(run: TurnRun, steps: 'this' | 'all'): Promise<TurnRun>;
  isInterrupted(run: TurnRun): Promise<boolean>;
  /** The running turn that an event interrupts. */
  turnToInterrupt(
    deps: Pick<EngineDeps, 'store' | 'agents' | 'registry'>,
    address: ActorAddress,
    event: Event,
  ): Promise<TurnId | null>;
  /** Throws `agent_busy` if an addressed agent is at work and rejects messages meanwhile. */
  refuseBusy(
    deps: Pick<EngineDeps, 'store' | 'agents'>,
    log: ConversationKey,
    draft: EventDraft,
  ): Promise<void>;
}

/** Long histories made shorter. Fact: the prompt has grown, or the agent asks for it. */
interface CompactionFeature {
  /** Begins to count for the present step. */
  beginStep(run: TurnRun): TurnRun;
  /** `beginStep` for a resumed turn: applies again what it had decided. */
  replay(run: TurnRun): Promise<TurnRun>;
  /** The reason to compact before this prompt is sent. */
  reason(run: TurnRun, prompt: PromptRecord): CompactionReason | null;
  compact(run: TurnRun): Promise<Outcome>;
  /** One call of the summariser. */
  askSummary(run: TurnRun, words: SummaryRequest, maxOutputTokens: number): Promise<SummaryAnswer>;
  /** Logs an imported summary; false if it would hide other events. */
  recordSummary(
    deps: EngineDeps,
    log: ConversationKey,
    summary: ImportedSummary,
    made: { by: AgentId; at: number },
  ): Promise<boolean>;
}

/** Caps on the cost of model calls. Fact: a cap is defined, or the conversation is a thread: the tree of a task always has one. */
interface BudgetFeature {
  readonly hasCaps: boolean;
  /** Makes a model call if every budget allows it, and counts its cost. */
  pay<T>(run: TurnRun, call: PaidCall, make: () => Promise<{ outcome: T; end: CallEnd }>): Promise<Paid<T>>;
  report(
    tenant: TenantId,
    of: { root?: ConversationId | undefined; agent?: AgentId | undefined; now: number },
  ): Promise<BudgetLine[]>;
}

/** Agents that may not stop before their work is done. Fact: the agent keeps a list, or may not stay silent. */
interface SupervisionFeature {
  /** What holds back the end of the turn; null if nothing does. */
  gate(run: TurnRun): Gate | null;
}

/** Steps that agents take a conversation through. Fact: the conversation has a run. */
interface WorkflowsFeature {
  /** The events by which a turn that ends a step advances its runs. */
  advance(run: TurnRun): Promise<OutgoingEvent[]>;
}

/**
 * The slot of an activation under the caps of concurrent turns. A turn that waits for its model server to come back holds
 * none, so that it keeps nobody else from working.
 */
export interface TurnSlot {
  /** Gives the slot back until `regain`. Repeating it has no effect. Never throws. */
  leave(): Promise<void>;
  /** Waits until the slot is held again, or until the signal aborts. Never throws. */
  regain(signal: AbortSignal): Promise<void>;
}

/** `entry`: the slot that the activation has entered with. */
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

/** What only some companies use: a folder of `src/actors` with one such object, listed in `features.ts`. */
export interface Feature {
  /** Its hooks in this process. None if what is defined does not need it. */
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
  /** Counts what happens. */
  metrics: Metrics;
  /** Receives problems that no caller is told. */
  onWarning: (error: unknown, where: string) => void;
  /** Release of this code: folds that another one has stored are not used. */
  release: string;
  /** Least events between two stored folds. Default: that of the feature. */
  foldEvery?: number | undefined;
  /** Budgets of the definition. */
  caps?: BudgetCaps;
  /** Schedules of the definition. */
  schedules?: readonly Schedule[];
  /** Default: memories are searched by words alone. */
  embedder?: Embedder | null;
  /** Longest waits for the vector of a search, ms; see `MemorySearchDeps`. */
  deadlineMs?: number | undefined;
  /** Longest wait for the first answer of an embedder, ms. */
  firstDeadlineMs?: number | undefined;
}

/** Commands that a feature carries out. Without it they are refused. */
export interface FeatureCommands {
  /** Runs an ended turn again, in a fork. */
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
