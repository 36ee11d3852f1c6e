import type { Clock } from '../../clock.ts';
import type {
  ActorAddress,
  AgentId,
  ConversationId,
  StateNote,
  StreamDelta,
  TenantId,
} from '../../events/index.ts';
import type { Logger } from '../../logger.ts';
import type { Metrics } from '../../metrics.ts';
import type { Admission } from '../../queue/admission.ts';
import type { Broadcast } from '../../queue/broadcast.ts';
import type { Router } from '../../queue/router.ts';
import type { Store } from '../../store/store.ts';
import type { Tracer } from '../../tracing.ts';
import type { BudgetLedger } from '../budget/ledger.ts';
import type { CalibrationBook } from './calibration-book.ts';
import type { ConversationLog } from '../log/conversation-log.ts';
import type { Trust } from '../conversations/trust.ts';
import type { AgentRegistry } from './agent-runtime.ts';
import type { MemorySearch } from '../memory/memory-search.ts';
import type { PendingCount } from './pending-count.ts';
import type { Redaction } from '../log/redaction.ts';
import type { LogFolds } from '../log/log-folds.ts';
import type { Folded } from '../log/read-view.ts';
import type { Registry } from './registry.ts';
import type { TaskTrees } from '../tasks/task-trees.ts';

/** Everything the engine touches, injected, so that a simulation can own every await. */
export interface EngineDeps {
  store: Store;
  router: Router;
  broadcast: Broadcast;
  admission: Admission;
  metrics: Metrics;
  tracer?: Tracer;
  logger?: Logger;
  log: ConversationLog;
  /** Of every text, before it is stored. */
  redaction?: Redaction | undefined;
  agents: AgentRegistry;
  registry: Registry;
  /** What agents would see where they are not at work, for those who look at their prompts. */
  coldViews?: LogFolds<Folded>;
  clock: Clock;
  /** 0 <= n < 1. */
  random: () => number;
  /** Distinguishes this process among lease holders. */
  process: string;
  /** Secret of a conversation: fences derive from it. */
  secretOf: (address: ActorAddress) => string;
  countTokens: (text: string) => number;
  /** What is known of models: how they count, and how much they take. */
  models: CalibrationBook;
  /** What model calls may still cost. */
  budgets: BudgetLedger;
  /** How many tasks came of one message. */
  trees: TaskTrees;
  /** How many actors wait; without it any number may. */
  pending?: PendingCount;
  /** Finds again what left an agent's window. */
  memory: MemorySearch;
  limits: EngineLimits;
  schedules?: readonly Schedule[];
  /** Everybody whose conversations end by themselves; the default tenant where nothing is said. */
  tenants?: () => Promise<readonly TenantId[]>;
  lifecycle?: Lifecycle;
  /** Whose word counts, by id; by default everybody's. */
  trust?: Trust;
  /** Aborts when the process wants to end: steps under way are finished, nothing new is begun. */
  stopping: AbortSignal;
  /** Token deltas, for whoever watches; never stored. */
  onDelta: (delta: StreamDelta) => void;
  /** What machines go through, for whoever watches; never stored. */
  onState?: (note: StateNote) => void;
  /** What an operator should know and no event says. */
  onWarning: (error: unknown, where: string) => void;
}

/** A message that the runtime sends to an agent at fixed times. */
export interface Schedule {
  name: string;
  conversation: ConversationId;
  to: AgentId;
  content: string;
  /** The last scheduled time that is not after `now`, ms; null: none. */
  lastBy(now: number): number | null;
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
  /** Starts of one turn before it is given up as poison. */
  maxAttempts: number;
  /** Model calls within one turn. */
  maxSteps: number;
  /** Steps in a row whose calls give nothing but results that the turn was given before; then it ends. */
  maxRepeats: number;
  /** What agents pass on to agents, one after the other, since a human spoke. */
  maxHops: number;
  /** Turns in one conversation since a human spoke. */
  maxAgentTurns: number;
  /** Tasks within tasks. */
  maxDepth: number;
  /** Tasks that one agent may have open in one conversation. */
  maxOpenTasks: number;
  /** Tasks that may come of one message of a person or a schedule, and how many of them may be open at once. */
  maxTreeTasks: number;
  maxTreeOpen: number;
  /** After which a task ends as aborted, a question as expired and an approval as denied, ms. */
  taskMs: number;
  questionMs: number;
  approvalMs: number;
  /** Pause between sweeps, ms; jittered by a quarter. */
  sweepMs: number;
  /** Age of addressed events a sweep still looks for, ms; until one has found nothing, sweeps look at all. */
  sweepWindowMs: number;
  /** Warm state of an actor or a conversation is dropped when it has been idle this long, ms. */
  idleMs: number;
  /** Tool output above this is shown as a preview, bytes. */
  previewBytes: number;
  /** A data directory with one owner: leases of other processes are dead ones. */
  soleOwner: boolean;
}

/** What model calls for all that is delegated of one message may take: a thousand tasks of a hundred thousand each. */
export const MAX_TREE_TOKENS = 100_000_000;

/** How long journals and effects are kept, ms: a turn that was left for longer cannot be gone on with. */
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
  soleOwner: false,
};
