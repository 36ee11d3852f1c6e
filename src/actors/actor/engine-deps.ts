import type { Clock } from '../../base/clock.ts';
import type { ActorAddress, PersonProfile, LiveNote, TenantId, Author, EventId } from '../../events/index.ts';
import type { Logger } from '../../base/logger.ts';
import type { Metrics } from '../../events/metrics.ts';
import type { Admission } from '../../queue/admission.ts';
import type { Broadcast } from '../../queue/broadcast.ts';
import type { Router } from '../../queue/router.ts';
import type { Store, ConversationKey } from '../../store/store.ts';
import type { Tracer } from '../../base/tracing.ts';
import type { CalibrationCache } from './calibration-cache.ts';
import type { ConversationLog } from '../log/conversation-log.ts';
import type { AgentRegistry } from './agent-runtime.ts';
import type { Redaction } from '../../events/redaction.ts';
import type { Checkpoints, LogFolds, Folded } from '../log/read-log.ts';
import type { Registry } from './registry.ts';
import type { ReadTasks } from '../log/tasks.ts';
import type { TaskTrees } from './task-trees.ts';
import { TroupeError } from '../../base/errors.ts';
import { LRUCache } from 'lru-cache';

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
  models: CalibrationCache;
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
  /** Default: conversations are kept. */
  retention?: Retention | undefined;
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

/** How long conversations without new events are kept. */
export interface Retention {
  days: number;
  /** Days of single tenants. */
  tenants?: Readonly<Record<string, number>> | undefined;
}

/** When conversations end by themselves. Default: never. */
export interface Lifecycle {
  /** Time without events after which a conversation is archived. */
  archiveAfterMs?: number | undefined;
  /** Time after its last event at which an archived conversation is deleted. */
  deleteAfterMs?: number | undefined;
}

/** Limits of the engine: those of the `limits` block of a definition, and constants. */
export interface EngineLimits {
  /** Lease length, ms. */
  leaseMs: number;
  /** Time for which a call waits for a model server that is restarting or loading its model, ms. */
  patienceMs: number;
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
  /** Tasks that may follow from one message of a person or a schedule. */
  maxTreeTasks: number;
  /** Those of them that may be open at once. */
  maxTreeOpen: number;
  /** Time after which a task ends as aborted, ms. */
  taskMs: number;
  /** Time after which a question ends as expired, ms. */
  questionMs: number;
  /** Time after which an approval ends as expired, ms. */
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
  /** The data directory has one owner: leases of other processes are dead. */
  soleOwner: boolean;
}

/** Most tokens for all tasks that follow from one message: a thousand tasks of a hundred thousand tokens. */
export const MAX_TREE_TOKENS = 100_000_000;

/** Time for which journals and effects are kept, ms. An older turn cannot be resumed. */
export const KEPT_MS = 7 * 24 * 3_600_000;

export const DEFAULT_LIMITS: EngineLimits = {
  leaseMs: 10_000,
  patienceMs: 300_000,
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
  soleOwner: false,
};

/** Ids of the people who may address agents and give commands; null: everybody. */
export type Trust = readonly string[] | null;

/** Only people are checked; agents and the system are always trusted. */
export function isTrusted(trust: Trust, { kind, id }: Author): boolean {
  return kind !== 'user' || trust === null || trust.includes(id);
}

export function requireTrusted(trust: Trust, by: Author, what: string): void {
  if (isTrusted(trust, by)) return;
  throw new TroupeError('command_refused', `"${by.id}" may not ${what}: it is not one of trust.people`, {
    author: by.id,
  });
}

/** Throws `command_refused` unless a trusted person asks. */
export function requirePerson(trust: Trust, by: Author, what: string): void {
  requireTrusted(trust, by, what);
  if (by.kind === 'user') return;
  throw new TroupeError('command_refused', `only a person may ${what}, not the ${by.kind} "${by.id}"`, {
    author: by.id,
  });
}

interface Place extends ConversationKey {
  id: EventId;
}

/** Values that came with messages, for tools in this process. They are never stored, and go with the process. */
interface ForTools {
  get(place: Place): unknown;
  /** The function takes the value back. */
  set(place: Place, value: unknown): () => void;
  /** Drops those of a deleted conversation: another may get its id, and messages theirs. */
  forget(conversation: ConversationKey): void;
}

/** Most messages whose values are kept; the oldest go first. */
const KEPT = 10_000;

export function createForTools(): ForTools {
  // Made with the first value: it takes its room at once, and most conversations bring none.
  let values: LRUCache<string, { value: unknown }> | null = null;
  return {
    get: (place) => values?.get(keyOf(place))?.value,
    set(place, value) {
      const kept = (values ??= new LRUCache({ max: KEPT }));
      const key = keyOf(place);
      const before = kept.get(key);
      kept.set(key, { value });
      return () => void (before ? kept.set(key, before) : kept.delete(key));
    },
    forget(conversation) {
      const prefix = prefixOf(conversation);
      for (const key of values?.keys() ?? []) if (key.startsWith(prefix)) values?.delete(key);
    },
  };
}

function keyOf(place: Place): string {
  return `${prefixOf(place)}${place.id}`;
}

function prefixOf({ tenant, conversation }: ConversationKey): string {
  return `${tenant}/${conversation}/`;
}

/** Counts the actors of a tenant that wait for a turn, against a limit. */
export interface PendingCount {
  readonly limit: number;
  /** Never rejects: 0 while the queue is unavailable, so that no one is refused. */
  of(tenant: TenantId): Promise<number>;
}

export const DEFAULT_PENDING = 50_000;
/** Greatest age of a count. A flood may exceed the limit by what comes in this time. */
const COUNT_LIFE_MS = 250;
const MAX_TENANTS = 1_000;

export function createPendingCount({
  router,
  clock,
  limit = DEFAULT_PENDING,
}: {
  router: Pick<Router, 'backlog'>;
  clock: Pick<Clock, 'monotonic'>;
  limit?: number | undefined;
}): PendingCount {
  const counts = new Map<TenantId, { at: number; waiting: Promise<number> }>();
  return {
    limit,
    of(tenant) {
      const now = clock.monotonic();
      const known = counts.get(tenant);
      if (known && now - known.at < COUNT_LIFE_MS) return known.waiting;
      if (counts.size >= MAX_TENANTS) counts.clear();
      const waiting = router.backlog(tenant).catch(() => 0);
      counts.set(tenant, { at: now, waiting });
      return waiting;
    },
  };
}
