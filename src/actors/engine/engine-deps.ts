import type { ForTools } from '../calls/for-tools.ts';
import type { Clock } from '../../base/clock.ts';
import type { ActorAddress, PersonProfile, LiveNote, TenantId } from '../../events/index.ts';
import type { Logger } from '../../base/logger.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { Admission } from '../../queue/admission.ts';
import type { Broadcast } from '../../queue/broadcast.ts';
import type { Router } from '../../queue/router.ts';
import type { Store } from '../../store/store.ts';
import type { Tracer } from '../../base/tracing.ts';
import type { CalibrationBook } from './calibration-book.ts';
import type { ConversationLog } from '../log/conversation-log.ts';
import type { Trust } from '../conversations/trust.ts';
import type { AgentRegistry } from './agent-runtime.ts';
import type { PendingCount } from './pending-count.ts';
import type { Redaction } from '../log/redaction.ts';
import type { Checkpoints } from '../log/checkpoints.ts';
import type { LogFolds } from '../log/log-folds.ts';
import type { Folded } from '../log/read-view.ts';
import type { Registry } from './registry.ts';
import type { ReadTasks } from '../tasks/read-tasks.ts';
import type { TaskTrees } from '../tasks/task-trees.ts';

/** Everything the engine depends on. Injected, so that a simulation can control every await. */
export interface EngineDeps {
  store: Store;
  router: Router;
  broadcast: Broadcast;
  admission: Admission;
  metrics: Metrics;
  tracer?: Tracer;
  logger?: Logger;
  log: ConversationLog;
  /** Applied to every text before it is stored. */
  redaction?: Redaction | undefined;
  agents: AgentRegistry;
  registry: Registry;
  /** Stored folds of long logs. Absent: none. */
  checkpoints?: Checkpoints | undefined;
  /** The tasks of conversations, kept for the next read. */
  taskFolds: LogFolds<ReadTasks>;
  /** Views of agents that are not at work, for the inspector. */
  coldViews?: LogFolds<Folded>;
  clock: Clock;
  /** 0 <= n < 1. */
  random: () => number;
  /** Distinguishes this process among lease holders. */
  process: string;
  /** Secret of a conversation: fences derive from it. */
  secretOf: (address: ActorAddress) => string;
  countTokens: (text: string) => number;
  /** Learnt facts about models: how they count tokens, and their windows. */
  models: CalibrationBook;
  /** Counts the tasks that follow from one message. */
  trees: TaskTrees;
  /** Lends the place of a running turn to others of this process; the function returns it. Absent: places are not lent. */
  lendPlace?: () => () => void;
  /** Counts the waiting actors. Absent: no limit. */
  pending?: PendingCount;
  limits: EngineLimits;
  /** Tenants whose quiet conversations are archived and deleted. Default: the default tenant. */
  tenants?: () => Promise<readonly TenantId[]>;
  lifecycle?: Lifecycle;
  /** Profile of a person by the author's id. Default: nobody has one. */
  profileOf?: (tenant: TenantId, person: string) => Promise<PersonProfile | null>;
  /** Default: everybody. */
  trust?: Trust;
  /** What the application gives its tools. */
  app?: unknown;
  /** What came with messages for tools, in this process. */
  forTools?: ForTools;
  /** Aborts when the process is to stop: steps under way are finished, and nothing new begins. */
  stopping: AbortSignal;
  /** What happens in running turns, for watchers; never stored. */
  onLive?: (note: LiveNote) => void;
  /** Problems for operators that no event reports. */
  onWarning: (error: unknown, where: string) => void;
}

/** When conversations end by themselves. Default: never. */
export interface Lifecycle {
  /** Time without events after which a conversation is archived. */
  archiveAfterMs?: number | undefined;
  /** Time after its last event at which an archived conversation is deleted. */
  deleteAfterMs?: number | undefined;
}

export interface EngineLimits {
  /** Lease length, ms. */
  leaseMs: number;
  /** Starts of one turn, after which it fails as `poison`. */
  maxAttempts: number;
  /** Model calls within one turn. */
  maxSteps: number;
  /** Steps in a row without a new result, after which the turn ends. */
  maxRepeats: number;
  /** Handoffs and delegations in a row since a person spoke. */
  maxHops: number;
  /** Turns in one conversation since a person spoke. */
  maxAgentTurns: number;
  /** Tasks within tasks. */
  maxDepth: number;
  /** Tasks that one agent may have open in one conversation. */
  maxOpenTasks: number;
  /** Tasks that may follow from one message of a person or a schedule: in all, and open at once. */
  maxTreeTasks: number;
  maxTreeOpen: number;
  /** Time after which a task ends as aborted, and a question or an approval as expired, ms. */
  taskMs: number;
  questionMs: number;
  approvalMs: number;
  /** Pause between sweeps, ms; jittered by a quarter. */
  sweepMs: number;
  /** Age up to which a sweep checks addressed events, ms. See `Sweeper` for the sweeps that check all. */
  sweepWindowMs: number;
  /** Idle time after which the warm state of an actor or a conversation is dropped, ms. */
  idleMs: number;
  /** Size above which a tool output is shown as a preview, bytes. */
  previewBytes: number;
  /** Characters that reading and compacting may process in one turn: about a minute of one core. */
  turnWork: number;
  /** Ages from which work counts as stuck, ms: see `LimitInput`. */
  stuckModelMs: number;
  stuckToolsMs: number;
  stuckBackoffMs: number;
  stuckSlotMs: number;
  stuckAnswerMs: number;
  /** The data directory has one owner: leases of other processes are dead. */
  soleOwner: boolean;
}

/** Most tokens for all tasks that follow from one message: a thousand tasks of a hundred thousand tokens. */
export const MAX_TREE_TOKENS = 100_000_000;

/** Time for which journals and effects are kept, ms. An older turn cannot be resumed. */
export const KEPT_MS = 7 * 24 * 3_600_000;

export const DEFAULT_LIMITS: EngineLimits = {
  leaseMs: 30_000,
  maxAttempts: 5,
  maxSteps: 50,
  maxRepeats: 10,
  maxHops: 64,
  maxAgentTurns: 200,
  maxDepth: 5,
  maxOpenTasks: 64,
  maxTreeTasks: 1_000,
  maxTreeOpen: 256,
  taskMs: 24 * 3_600_000,
  questionMs: 7 * 24 * 3_600_000,
  approvalMs: 7 * 24 * 3_600_000,
  sweepMs: 20_000,
  sweepWindowMs: 3_600_000,
  idleMs: 60_000,
  previewBytes: 8_192,
  turnWork: 1_073_741_824,
  stuckModelMs: 180_000,
  stuckToolsMs: 600_000,
  stuckBackoffMs: 60_000,
  stuckSlotMs: 30_000,
  stuckAnswerMs: 24 * 3_600_000,
  soleOwner: false,
};
