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
  /** Cached task folds of conversations. */
  taskFolds: LogFolds<ReadTasks>;
  /** Cached views of agents that are not at work, for the inspector. */
  coldViews?: LogFolds<Folded>;
  clock: Clock;
  /** 0 <= n < 1. */
  random: () => number;
  /** Distinguishes this process among lease holders. */
  process: string;
  /** The secret of a conversation, from which the keys of marks and fences are derived. */
  secretOf: (address: ActorAddress) => string;
  countTokens: (text: string) => number;
  /** Learnt facts about models. */
  models: CalibrationCache;
  /** Counts the tasks that follow from one message. */
  trees: TaskTrees;
  /** Lets another turn of this process run while one waits; the returned function ends that. Default: no lending. */
  lendPlace?: () => () => void;
  /** Counts the waiting actors. Absent: no limit. */
  pending?: PendingCount;
  limits: EngineLimits;
  /** Returns the tenants whose quiet conversations are archived and deleted. Default: the default tenant. */
  tenants?: () => Promise<readonly TenantId[]>;
  lifecycle?: Lifecycle;
  /** How long conversations are kept. Default: for ever. */
  retention?: Retention | undefined;
  /** Returns the profile of a person by the author's id. Default: nobody has one. */
  profileOf?: (tenant: TenantId, person: string) => Promise<PersonProfile | null>;
  /** Trusted people. Default: everybody. */
  trust?: Trust;
  /** The value that the application gives its tools. */
  app?: unknown;
  /** Values for tools that came with messages in this process. */
  forTools?: ForTools;
  /** Aborts when the process is to stop. Running steps are finished, and nothing new begins. */
  stopping: AbortSignal;
  /** Called with what happens in running turns, for watchers. Never stored. */
  onLive?: (note: LiveNote) => void;
  /** Called with problems for operators that no event reports. */
  onWarning: (error: unknown, where: string) => void;
}

/** How long conversations without new events are kept. */
export interface Retention {
  days: number;
  /** Days by tenant, for tenants that differ. */
  tenants?: Readonly<Record<string, number>> | undefined;
}

/** When conversations end by themselves. Default: never. */
export interface Lifecycle {
  /** Time without events after which a conversation is archived, ms. */
  archiveAfterMs?: number | undefined;
  /** Time after its last event at which an archived conversation is deleted, ms. */
  deleteAfterMs?: number | undefined;
}

/** Limits of the engine: those of the `limits` block of a definition, and constants. */
export interface EngineLimits {
  /** Lease length, ms. */
  leaseMs: number;
  /** How long a call waits for a model server that is restarting or loading its model, ms. */
  patienceMs: number;
  /** Maximum starts of one turn, after which it fails as `poison`. */
  maxAttempts: number;
  /** Maximum model calls within one turn. */
  maxSteps: number;
  /** Maximum steps in a row without a new result, after which the turn ends. */
  maxRepeats: number;
  /** Maximum handoffs and delegations in a row since a person spoke. */
  maxHops: number;
  /** Maximum turns in one conversation since a person spoke. */
  maxAgentTurns: number;
  /** Maximum depth of tasks within tasks. */
  maxDepth: number;
  /** Maximum tasks that one agent may have open in one conversation. */
  maxOpenTasks: number;
  /** Maximum tasks that may follow from one message of a person or a schedule. */
  maxTreeTasks: number;
  /** Maximum of these tasks that may be open at the same time. */
  maxTreeOpen: number;
  /** Time after which a task ends as aborted, ms. */
  taskMs: number;
  /** Time after which a question ends as expired, ms. */
  questionMs: number;
  /** Time after which an approval ends as expired, ms. */
  approvalMs: number;
  /** Pause between sweeps, ms, varied at random by a quarter. */
  sweepMs: number;
  /** Age up to which a sweep checks addressed events, ms. See `Sweeper` for sweeps that check all events. */
  sweepWindowMs: number;
  /** Idle time after which the warm state of an actor or a conversation is dropped, ms. */
  idleMs: number;
  /** Size above which a tool output is shown as a preview, bytes. */
  previewBytes: number;
  /** Maximum characters that reading and compacting may process in one turn: about a minute of one core. */
  turnWork: number;
  /** Whether this process alone uses the data directory, so that leases of other processes are dead. */
  soleOwner: boolean;
}

/** Maximum tokens for all tasks that follow from one message: a thousand tasks of a hundred thousand tokens. */
export const MAX_TREE_TOKENS = 100_000_000;

/** How long journals and effects are kept, ms. An older turn cannot be resumed. */
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

/** Whether an author is trusted. Agents and the system always are. */
export function isTrusted(trust: Trust, { kind, id }: Author): boolean {
  return kind !== 'user' || trust === null || trust.includes(id);
}

export function requireTrusted(trust: Trust, by: Author, what: string): void {
  if (isTrusted(trust, by)) return;
  throw new TroupeError('command_refused', `"${by.id}" may not ${what}: it is not one of trust.people`, {
    author: by.id,
  });
}

/** Throws `command_refused` unless `by` is a trusted person. */
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

/** Values for tools that came with messages. They are never stored and are lost when the process ends. */
interface ForTools {
  get(place: Place): unknown;
  /** Keeps a value. The returned function removes it. */
  set(place: Place, value: unknown): () => void;
  /** Drops the values of a deleted conversation, because a new one may use the same ids. */
  forget(conversation: ConversationKey): void;
}

/** Maximum messages whose values are kept. The oldest are dropped first. */
const KEPT = 10_000;

export function createForTools(): ForTools {
  // Created with the first value, because it allocates its memory at once and most processes need none.
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
  /** The number of waiting actors. Never rejects. 0 while the queue is unavailable, so that nobody is refused. */
  of(tenant: TenantId): Promise<number>;
}

export const DEFAULT_PENDING = 50_000;
/** Maximum age of a count, ms. A flood may exceed the limit by the messages of this time. */
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
