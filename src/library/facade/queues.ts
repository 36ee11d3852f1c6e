import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import {
  DEFAULT_TENANT,
  type TenantId,
  type AgentId,
  type ConversationId,
  type ActorAddress,
  addressKey,
  runtimeId,
} from '../../events/index.ts';
import {
  providerLoads,
  type QueueReport,
  type Holder,
  MOST_HOLDERS,
  type RunningLine,
  type WaitCause,
  type WaitingLine,
  waitWords,
  type StuckLine,
  type StuckQuery,
  type StuckReport,
  STUCK_AFTER,
  stuckReasons,
  unansweredLine,
  undefinedLine,
} from '../inspect/stuck.ts';
import type { HeardTurn } from './live.ts';
import { undefinedWork } from '../../actors/engine/undefined-agents.ts';
import { isGranted, rangesOf } from '../access/index.ts';
import { rankOf, type Standing } from '../projection/standing.ts';
import type { AdmissionLoad, Refused } from '../../queue/admission.ts';
import type { WaitingWake } from '../../queue/router.ts';
import type { Clock } from '../../base/clock.ts';
import type { Metrics } from '../../events/metrics.ts';

const MOST_LINES = 100;

/** Who runs and who waits. A tenant may not see the number of other tenants' wakes. */
export async function readQueues(
  deps: EngineDeps,
  { tenant, own }: { tenant: TenantId; own: boolean },
  { heard, waits }: { heard: readonly HeardTurn[]; waits: ((present: number[]) => QueueWaits) | undefined },
): Promise<QueueReport> {
  const isWhole = !own && tenant === DEFAULT_TENANT;
  const turns = await turnsNow(deps, tenant, await liveTurns(deps, heard));
  const now = deps.clock.now();
  const { running, waiting, all } = turns;
  const present = (isWhole ? all.waiting : waiting).map(({ since }) => Math.max(0, now - since));
  const { wait = null, failed = 0 } = (isWhole && waits?.(present)) || {};
  const depth = isWhole
    ? await deps.router.depth()
    : { waiting: await deps.router.backlog(tenant), active: 0, delayed: 0 };
  return {
    ...depth,
    ...(failed > 0 && { failed }),
    ...(wait && { wait }),
    turns: {
      running: running.slice(0, MOST_LINES),
      runningTotal: running.length,
      waiting: waiting.slice(0, MOST_LINES),
      waitingTotal: waiting.length + (isWhole ? turns.more : 0),
      oldestMs: present.length === 0 ? null : Math.max(...present),
    },
    providers: providerLoads(turns.caps.providers ?? {}, all.running, all.waiting),
  };
}

const ASKS = rankOf('asks');

/** Most lines of one answer. */
const MOST_STUCK = 1_000;

/** What is stuck in a tenant. Names nobody of another tenant. */
export async function readStuck(
  deps: EngineDeps,
  tenant: TenantId,
  heard: readonly HeardTurn[],
  { afterMs, limit = 100, among }: StuckQuery,
): Promise<StuckReport> {
  const after =
    afterMs === undefined
      ? STUCK_AFTER
      : { modelMs: afterMs, toolsMs: afterMs, backoffMs: afterMs, slotMs: afterMs, answerMs: afterMs };
  const now = deps.clock.now();
  const live = await liveTurns(deps, heard);
  const running = live
    .filter(({ address }) => address.tenant === tenant)
    .map(({ address: { conversation, agent }, turn, since, doing }) => ({
      conversation,
      agent,
      turn,
      since,
      doing,
    }));
  const { waiting } = await turnsNow(deps, tenant, live);
  const stuck = [
    ...(await undefinedLines(deps, tenant, { among, afterMs }, now)),
    ...stuckReasons({ running, waiting }, now, after),
  ];
  const before = now - after.answerMs + 1;
  const { lines, total } = await unanswered(deps, { tenant, limit, among, before }, now);
  const servers = awayServers(deps);
  return {
    ...(servers.length > 0 && { awayServers: servers }),
    stuck: [...stuck, ...lines].slice(0, Math.min(limit, MOST_STUCK)),
    total: Math.min(stuck.length + total, MOST_STUCK),
  };
}

function awayServers({ agents }: EngineDeps): NonNullable<StuckReport['awayServers']> {
  const without = new Map<string, AgentId[]>();
  for (const [agent, runtime] of agents)
    for (const server of runtime.awayServers) without.set(server, [...(without.get(server) ?? []), agent]);
  return [...without].map(([server, ids]) => ({ server, agents: ids }));
}

/** Messages for agents that are not defined. They are stuck from the first moment. */
async function undefinedLines(
  deps: EngineDeps,
  tenant: TenantId,
  { among, afterMs = 0 }: StuckQuery,
  now: number,
): Promise<StuckLine[]> {
  const lines = await undefinedWork(deps, tenant);
  return lines
    .filter(({ conversation, since }) => {
      if (now - since < afterMs) return false;
      return !among || isGranted({ conversations: among }, conversation);
    })
    .map(({ since, work, ...of }) => undefinedLine(of, { since, work }, now));
}

interface UnansweredQuery {
  tenant: TenantId;
  limit: number;
  among: readonly string[] | undefined;
  before: number;
}

/** What people have not answered, as far as the inbox has read the logs. */
async function unanswered(
  { store }: EngineDeps,
  { tenant, limit, among, before }: UnansweredQuery,
  now: number,
): Promise<{ lines: StuckLine[]; total: number }> {
  const filter = { tenant, ranks: [ASKS], to: before, ...(among && { ranges: rangesOf(among) }) };
  const [{ rows }, { ranks }] = await Promise.all([
    store.inbox.standings({ ...filter, order: 'oldest', limit: Math.min(limit, MOST_STUCK) }),
    store.inbox.countStandings(filter),
  ]);
  const lines = rows.flatMap(({ id, since, data }) => {
    if (among && !isGranted({ conversations: among }, id)) return [];
    const { asks } = JSON.parse(data) as Partial<Standing>;
    if (!asks) return [];
    const { task, agent, kind, text, count } = asks;
    const reason = { kind: 'unanswered' as const, since, task, asks: kind, text, count };
    return [unansweredLine({ conversation: id as ConversationId, agent }, reason, now)];
  });
  return { lines, total: ranks[ASKS] ?? 0 };
}

/** Who runs and who waits, over all processes. */
interface TurnsNow {
  caps: AdmissionLoad['caps'];
  /** Running turns of the tenant, the oldest first. */
  running: RunningLine[];
  /** Waiting agents of the tenant, the longest first. */
  waiting: WaitingLine[];
  /** The same for all tenants, as numbers. */
  all: { running: (string | null)[]; waiting: { provider: string | null; since: number }[] };
  /** Number of waiting agents beyond those examined. */
  more: number;
}

/** Most wakes of the queue that are examined. */
const MOST_WAKES = 300;
/** Most records that are read for turns without notes. */
const MOST_READ = 100;

/**
 * Three sources, each with a part: notes of running turns say what they do, admission says who holds slots and who was
 * refused, and the queue says who waits. A process that has just begun to listen missed the notes of turns that already
 * ran, so it reads those from their records.
 */
async function turnsNow(deps: EngineDeps, tenant: TenantId, heard: readonly HeardTurn[]): Promise<TurnsNow> {
  const { admission, router, agents, clock } = deps;
  const [load, wakes, depth] = await Promise.all([
    admission.load(tenant),
    router.waiting(MOST_WAKES).catch(() => []),
    router.depth().catch(() => null),
  ]);
  const providerOf = (agent: HeardTurn['address']['agent']) => agents.get(agent)?.profile.provider ?? null;
  const known = new Map(heard.map((turn) => [addressKey(turn.address), turn]));
  const unheard = load.held.filter(({ address }) => !known.has(addressKey(address)));
  const told = heard
    .filter(({ address }) => address.tenant === tenant)
    .map(({ address: { conversation, agent }, turn, since, doing }) => ({
      conversation,
      agent,
      turn,
      since,
      provider: providerOf(agent),
      doing: doing.kind,
    }));
  const read = await readTurns(
    deps,
    unheard.filter(({ address }) => address.tenant === tenant),
  );
  const running = [...told, ...read].toSorted((a, b) => a.since - b.since);
  const allRunning = [
    ...heard.map(({ address }) => providerOf(address.agent)),
    ...unheard.map(({ provider }) => provider),
  ];
  const waits = waitsOf(
    load,
    wakes,
    new Set([...known.keys(), ...load.held.map(({ address }) => addressKey(address))]),
  );
  const now = clock.now();
  const waiting = waits
    .filter(({ address }) => address.tenant === tenant)
    .map(({ address, provider = providerOf(address.agent), since, kind }) =>
      lineOf(
        { address, provider, since, kind, turn: known.get(addressKey(address))?.turn ?? null },
        { load, running, allRunning, now },
      ),
    );
  return {
    caps: load.caps,
    running,
    waiting,
    all: {
      running: allRunning,
      waiting: waits.map(({ address, provider = providerOf(address.agent), since }) => ({ provider, since })),
    },
    more: wakes.length < MOST_WAKES ? 0 : Math.max(0, (depth?.waiting ?? 0) - waits.length),
  };
}

/** Leaves out turns of killed processes, which could not report their end. */
async function liveTurns(
  { store, clock, limits }: EngineDeps,
  heard: readonly HeardTurn[],
): Promise<HeardTurn[]> {
  const old = clock.now() - limits.leaseMs;
  const doubtful = limits.soleOwner ? [] : heard.filter(({ doing }) => doing.since < old).slice(0, MOST_READ);
  const over = new Set<HeardTurn>();
  await Promise.all(
    doubtful.map(async (turn) => {
      const record = await store.readActor(turn.address).catch(() => null);
      if (record?.turn?.id !== turn.turn) over.add(turn);
    }),
  );
  return heard.filter((turn) => !over.has(turn));
}

interface Wait {
  address: ActorAddress;
  provider?: string;
  since: number;
  kind: Refused['for'] | 'process' | 'lease';
}

/** One wait per actor: admission says why, the wake since when. The wake of a working actor is not a wait. */
function waitsOf(
  { waiting }: AdmissionLoad,
  wakes: readonly WaitingWake[],
  atWork: ReadonlySet<string>,
): Wait[] {
  const waits = new Map<string, Wait>();
  for (const { address, provider, since, for: kind } of waiting)
    waits.set(addressKey(address), { address, provider, since, kind });
  for (const { address, since, isHeldBack } of wakes) {
    const key = addressKey(address);
    if (atWork.has(key)) continue;
    const refused = waits.get(key);
    if (refused) refused.since = Math.min(refused.since, since);
    else waits.set(key, { address, since, kind: isHeldBack ? 'lease' : 'process' });
  }
  return [...waits.values()].toSorted((a, b) => a.since - b.since);
}

interface Around {
  load: AdmissionLoad;
  running: readonly RunningLine[];
  allRunning: readonly (string | null)[];
  now: number;
}

function lineOf(
  wait: Pick<WaitingLine, 'turn' | 'provider'> & Omit<Wait, 'provider'>,
  { load, running, allRunning, now }: Around,
): WaitingLine {
  const { address, provider, since, kind, turn } = wait;
  const { tenant, conversation, agent } = address;
  const cause = causeOf(kind, tenant, load);
  const holds = (line: RunningLine) =>
    cause === 'tenant_slot' || (cause === 'provider_slot' && line.provider === provider);
  const heldBy = running
    .filter(holds)
    .slice(0, MOST_HOLDERS)
    .map(({ conversation: where, agent: who, turn: id, since: began }): Holder => {
      return { conversation: where, agent: who, turn: id, since: began };
    });
  const holders =
    cause === 'provider_slot'
      ? allRunning.filter((each) => each === provider).length
      : running.filter(holds).length;
  const line = { conversation, agent, turn, provider, for: cause, since, heldBy, holders };
  return { ...line, words: waitWords(line, now) };
}

function causeOf(kind: Wait['kind'], tenant: TenantId, { caps, held }: AdmissionLoad): WaitCause {
  if (kind === 'call') return 'call_rate';
  if (kind !== 'slot') return kind;
  const own = held.filter(({ address }) => address.tenant === tenant).length;
  return caps.turnsPerTenant !== undefined && own >= caps.turnsPerTenant ? 'tenant_slot' : 'provider_slot';
}

async function readTurns(
  { store }: EngineDeps,
  slots: readonly AdmissionLoad['held'][number][],
): Promise<RunningLine[]> {
  const lines = await Promise.all(
    slots.slice(0, MOST_READ).map(async ({ address, provider }): Promise<RunningLine[]> => {
      const turn = (await store.readActor(address))?.turn;
      if (!turn) return [];
      const started = await store.readById(address, runtimeId(turn.id, 'started'));
      const { conversation, agent } = address;
      const since = started?.at ?? turn.at ?? 0;
      return [{ conversation, agent, turn: turn.id, since, provider, doing: null }];
    }),
  );
  return lines.flat();
}

/** Waiting times of wakes that this process took lately and of those that wait now, ms. `failed`: wakes with an error. */
export interface QueueWaits {
  wait: { p50Ms: number; p95Ms: number; count: number } | null;
  failed: number;
}

const MAX_WAKES = 1_000;
const MAX_AGE_MS = 300_000;

/**
 * Passes metrics on and keeps the last `MAX_WAKES` waits of the last `MAX_AGE_MS`. Counters run since the start of the
 * process, so they do not show its present state.
 */
export function watchWaits(
  metrics: Metrics,
  clock: Pick<Clock, 'monotonic'>,
): Metrics & { waits(present?: readonly number[]): QueueWaits } {
  const waited = createRing();
  const failed = createRing();
  return {
    count: metrics.count.bind(metrics),
    change: metrics.change.bind(metrics),
    time(name, labels, ms) {
      metrics.time(name, labels, ms);
      if (name === 'wake_wait') waited.add(clock.monotonic(), Math.max(0, ms));
      else if (name === 'activation' && 'outcome' in labels && labels.outcome === 'failed')
        failed.add(clock.monotonic(), ms);
    },
    waits(present = []) {
      const since = clock.monotonic() - MAX_AGE_MS;
      const sorted = [...waited.since(since), ...present].toSorted((a, b) => a - b);
      return {
        wait:
          sorted.length === 0
            ? null
            : { p50Ms: quantile(sorted, 0.5), p95Ms: quantile(sorted, 0.95), count: sorted.length },
        failed: failed.since(since).length,
      };
    },
  };
}

function createRing() {
  const times = new Float64Array(MAX_WAKES);
  const values = new Float64Array(MAX_WAKES);
  let added = 0;
  return {
    add(at: number, value: number): void {
      times[added % MAX_WAKES] = at;
      values[added % MAX_WAKES] = value;
      added += 1;
    },
    since(at: number): number[] {
      return Array.from(values.subarray(0, Math.min(added, MAX_WAKES))).filter(
        (_, index) => (times[index] ?? 0) >= at,
      );
    },
  };
}

/** The `part`-th percentile, 0 to 1, rounded to 0.1 ms. */
function quantile(sorted: readonly number[], part: number): number {
  const value = sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0;
  return Math.round(value * 10) / 10;
}
