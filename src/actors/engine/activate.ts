import { type ErrorCode, TroupeError } from '../../base/errors.ts';
import {
  type ActorAddress,
  type ActorRecord,
  type AgentId,
  runtimeId,
  SYSTEM_AUTHOR,
} from '../../events/index.ts';
import type { WakeOutcome } from '../../queue/router.ts';
import type { ActorPatch } from '../../store/store.ts';
import { changeAvailability, publishAvailability, importOwner } from '../actor/at-rest.ts';
import type { EngineDeps } from '../actor/engine-deps.ts';
import { holdLease, type Lease, restingLease } from '../actor/lease.ts';
import type { AgentRuntime } from '../actor/agent-runtime.ts';
import { createTurnSlot, type TurnSlot, type TurnDeps } from '../attempt/turn-run.ts';
import { beginAtSummary, catchUp } from '../log/read-log.ts';
import type { LiveActor } from '../actor/registry.ts';
import { beginTurn, runTurn } from '../turn/turn.ts';
import { sendOutgoing } from '../log/tasks.ts';

/** Pause that lets another process take a wake for an agent that this process does not define, ms. */
const ELSEWHERE_PAUSE_MS = 100;
/** Pause before a wake whose lease was lost here is tried again, ms. */
const LOST_PAUSE_MS = 1_000;

/**
 * Serves one wake: takes the lease, then begins, runs and commits turns until no work is left. The process may die at any
 * point; the next holder continues from the record.
 */
export async function activate(
  deps: TurnDeps,
  address: ActorAddress,
  begun: () => void = () => {},
  isElsewhere: (agent: AgentId) => boolean = () => false,
): Promise<WakeOutcome> {
  const runtime = deps.agents.get(address.agent);
  if (!runtime)
    return isElsewhere(address.agent) ? { kind: 'busy', retryInMs: ELSEWHERE_PAUSE_MS } : { kind: 'done' };
  const { provider } = runtime.profile;
  const entry = await deps.admission.enter(address, provider);
  if (entry.kind === 'full') return { kind: 'busy', retryInMs: entry.retryInMs };
  const slot = createTurnSlot(deps, { address, provider }, entry);
  try {
    return await activateMember(deps, address, { runtime, slot, begun });
  } finally {
    await slot.leave();
  }
}

interface Admitted {
  runtime: AgentRuntime;
  slot: TurnSlot;
  begun: () => void;
}

async function activateMember(
  deps: TurnDeps,
  address: ActorAddress,
  admitted: Admitted,
): Promise<WakeOutcome> {
  const resting = restingActor(deps, address);
  if (resting) {
    const lease = restingLease(deps, resting, ownerOf(deps));
    const outcome = await serve(deps, lease, () => work(deps, lease, admitted));
    if (outcome) return outcome;
  }
  // Everybody with access to the queue can forge wakes, so a wake for an unknown actor must not create a record.
  if (!deps.registry.find(address) && (await deps.store.head(address)) === 0) return { kind: 'done' };
  const isLost = await wasLost(deps, address);
  const acquired = await acquire(deps, address);
  if (acquired.kind === 'busy') {
    const wait = Math.min(Math.max(acquired.until - deps.clock.now(), 0), 1_000);
    return { kind: 'busy', retryInMs: wait + Math.floor(deps.random() * 50), isBegun: true };
  }
  const lease = holdLease(deps, acquired.record);
  const outcome = await serve(deps, lease, async () => {
    // A paused actor still publishes its committed events. A failed one does not, because its record cannot be trusted.
    if (acquired.record.parked === 'failed') await release(lease);
    else if (isLost && (await isPoison(deps, lease))) await giveUp(deps, lease, address);
    else await work(deps, lease, admitted);
  });
  return outcome ?? { kind: 'done' };
}

/** The record of an actor that rests in this process and has no due timer; null if there is none. */
function restingActor({ registry, clock }: EngineDeps, address: ActorAddress): ActorRecord | null {
  const resting = registry.find(address)?.resting;
  if (!resting || resting.timers.some(({ at }) => at <= clock.now())) return null;
  return resting;
}

/** Runs `perform` under the lease. Null: an error came before a resting actor's lease was taken, or it was not free. */
async function serve(
  deps: EngineDeps,
  lease: Lease,
  perform: () => Promise<void>,
): Promise<WakeOutcome | null> {
  const { tenant, conversation, agent } = lease.record;
  const address = { tenant, conversation, agent };
  deps.metrics.change('leases_held', 1);
  try {
    await perform();
  } catch (error) {
    if (!lease.isHeld) {
      // The view may already have events after the inputs of a turn that another process has pinned.
      deps.registry.drop(address);
      return null;
    }
    await settleFailure(deps, lease, address, error);
  } finally {
    lease.stop();
    deps.metrics.change('leases_held', -1);
  }
  // This process stops with the turn still pinned, so the wake is kept for another process.
  if (deps.stopping.aborted && lease.record.turn !== null)
    return { kind: 'busy', retryInMs: 0, isBegun: true };
  // A lease that expired while the store did not answer may have no new holder, so the wake must be tried again.
  if (lease.isLost) return { kind: 'busy', retryInMs: LOST_PAUSE_MS, isBegun: true };
  // Without this check, a message that arrived just before the release would wait for the sweeper.
  if (lease.record.parked === null && !lease.signal.aborted) await lookAgain(deps, address, lease);
  return { kind: 'done' };
}

async function work(deps: TurnDeps, lease: Lease, { runtime, slot, begun }: Admitted): Promise<void> {
  begun();
  const live = deps.registry.enter(lease.record, deps.clock.now());
  live.lease = lease;
  try {
    await restoreLive(deps, lease.record, live);
    for (;;) {
      if (lease.isHeld) await fireTimers(deps, lease);
      if (deps.stopping.aborted) throw deps.stopping.reason;
      // The agent was paused, failed or retired during the last turn. Its outputs are published, but no other turn begins.
      if (lease.record.parked !== null) return release(lease);
      const resumed = lease.record.turn !== null;
      const turn = resumed
        ? await resumeTurn(deps, lease, live)
        : await beginTurn({ deps, lease, runtime, live });
      if (!turn) return;
      await runTurn({ deps, lease, runtime, live, slot, turn, resumed });
      if (lease.left !== null) return;
      // A turn that was aborted while it waited for its model server has no slot.
      await slot.regain(deps.stopping);
    }
  } finally {
    deps.registry.leave(live, lease.record, deps.clock.now());
  }
}

/** Restores a cold actor from its checkpoint. Without a last turn there is no checkpoint, so none is searched. */
async function restoreLive({ features, log }: TurnDeps, record: ActorRecord, live: LiveActor): Promise<void> {
  const { checkpoints } = features;
  if (!checkpoints || live.view.upTo > 0) return;
  if (record.turnNo === 0 || record.processed < checkpoints.folds.least) return;
  const upTo = record.turn?.upTo ?? Infinity;
  const { secret } = live.view;
  const found = await checkpoints.restore(live.address, { secret, upTo });
  if (found) Object.assign(live, found.folded, { stored: found.stored });
  else await beginAtSummary(log, live.address, live, record.turn?.upTo ?? record.processed);
}

/** Sends the events of due timers, before the next turn reads the log. A timer is removed after its events are stored. */
async function fireTimers(deps: EngineDeps, lease: Lease): Promise<void> {
  const now = deps.clock.now();
  const { timers, tenant } = lease.record;
  const due = timers.filter(({ at }) => at <= now);
  if (due.length === 0) return;
  await sendOutgoing(
    deps,
    tenant,
    due.flatMap(({ posts }) => posts),
  );
  await lease.write({ state: { timers: timers.filter(({ at }) => at > now) } });
}

/** Resumes a pinned turn with the same inputs. Counts the attempt first, so that a crash loop ends. */
async function resumeTurn(deps: EngineDeps, lease: Lease, live: LiveActor) {
  const pinned = lease.record.turn;
  if (!pinned) return null;
  const turn = { ...pinned, attempt: pinned.attempt + 1 };
  await lease.write({ state: { turn } });
  await catchUp(deps.log, live.address, live, turn.upTo);
  return turn;
}

/**
 * Whether the last holder died or hung before it pinned a turn. (For a pinned turn, attempts are counted.) Reads the record
 * only if the actor is not warm in this process, because a warm actor was not lost.
 */
async function wasLost(
  { registry, store, clock, limits }: EngineDeps,
  address: ActorAddress,
): Promise<boolean> {
  if (registry.find(address)) return false;
  const held = await store.readActor(address);
  if (!held || held.owner === '' || held.turn !== null) return false;
  return limits.soleOwner || held.until < clock.now();
}

/** Counts the loss before the log is read, so that a log that kills its readers does so only a few times. */
async function isPoison({ limits }: EngineDeps, lease: Lease): Promise<boolean> {
  const lost = lease.record.lost + 1;
  await lease.write({ state: { lost } });
  return lost > limits.maxAttempts;
}

/** Marks the agent as failed, so that one conversation cannot kill process after process. `resume` tries again. */
async function giveUp(deps: EngineDeps, lease: Lease, address: ActorAddress): Promise<void> {
  const times = lease.record.lost;
  const message = `the process was lost ${times} times before a turn began (at most ${deps.limits.maxAttempts}): it was killed or hung on this conversation each time`;
  await markFailed(deps, address, lease.record, new TroupeError('poison', message, { lost: times }));
  await release(lease, { state: { lost: 0 } });
}

function ownerOf({ process, random }: EngineDeps): string {
  return `${process}:${Math.floor(random() * 2 ** 40).toString(36)}`;
}

async function acquire(deps: EngineDeps, address: ActorAddress) {
  const { store, clock, limits } = deps;
  const owner = ownerOf(deps);
  const now = clock.now();
  const told = deps.log.published;
  const first = await store.acquire(address, { owner, now, until: now + limits.leaseMs }, told);
  if (first.kind === 'acquired' || !limits.soleOwner) return first;
  // The directory has one owner, and an actor has one activation at a time. So this lease belongs to a dead process, or to
  // this one if an answer of the store was lost, unless an import holds it.
  const held = await store.readActor(address);
  if (!held || held.owner === importOwner(deps.process)) return first;
  return store.acquire(address, { owner, now: held.until + 1, until: now + limits.leaseMs }, told);
}

async function release(lease: Lease, patch: ActorPatch = {}): Promise<void> {
  await lease.write({ owner: '', until: 0, ...patch });
}

async function lookAgain(deps: EngineDeps, address: ActorAddress, { record, left }: Lease): Promise<void> {
  if (left === 'nothing') return;
  if (left === 'messages') return deps.router.wake(address);
  const { processed } = record;
  const head = await deps.store.head(address);
  if (head <= processed) return;
  const missed = await deps.store.addressed(address, { after: processed, upTo: head });
  if (missed.length > 0) await deps.router.wake(address);
}

const AGENT_FAILURES: readonly ErrorCode[] = [
  'actor_corrupt',
  'store_corrupt',
  'config_invalid',
  'event_conflict',
  'event_invalid',
  'provider_unusable',
];

/**
 * After a lost lease another process continues the work. An error that no retry can mend (a corrupt record, an id of the
 * runtime taken by another event) makes this agent fail, visibly. After any other error (an unavailable store, a shutdown) the
 * lease is released with the turn still pinned.
 */
async function settleFailure(
  deps: EngineDeps,
  lease: Lease,
  address: ActorAddress,
  error: unknown,
): Promise<void> {
  deps.registry.drop(address);
  if (error instanceof TroupeError && error.code === 'lease_lost') {
    deps.metrics.count('leases_lost', {});
    return;
  }
  if (error instanceof TroupeError && AGENT_FAILURES.includes(error.code)) {
    // A process that hung for longer than a lease finds its ids taken by its successor. The actor is then sound.
    if (!(await stillHeld(deps, lease))) return;
    await markFailed(deps, address, lease.record, error).catch((again: unknown) =>
      deps.onWarning(again, 'failure notice'),
    );
  } else if (error instanceof TroupeError && error.code === 'shutting_down') {
    await uncountAttempt(lease).catch((again: unknown) => deps.onWarning(again, 'release'));
  } else {
    deps.onWarning(error, `activation of @${address.agent}`);
  }
  await release(lease).catch((again: unknown) => deps.onWarning(again, 'release'));
  if (error instanceof TroupeError && error.policy === 'retry') {
    await deps.router.wake(address, { delayMs: 1_000 });
  }
}

async function stillHeld({ clock, limits, onWarning }: EngineDeps, lease: Lease): Promise<boolean> {
  try {
    await lease.write({ until: clock.now() + limits.leaseMs });
    return true;
  } catch (error) {
    onWarning(error, 'lease');
    return false;
  }
}

/** Takes back the count of the attempt, because an orderly stop is not a crash. */
async function uncountAttempt(lease: Lease): Promise<void> {
  const { turn } = lease.record;
  if (turn) await lease.write({ state: { turn: { ...turn, attempt: Math.max(0, turn.attempt - 1) } } });
}

/** Logs the failure of an agent and makes the agent unavailable until it is resumed. */
export async function markFailed(
  deps: EngineDeps,
  address: ActorAddress,
  record: Pick<ActorRecord, 'fence'> | null,
  error: TroupeError,
): Promise<void> {
  // An unreadable record has no fence. The time also distinguishes this event from earlier ones.
  const id = runtimeId('failed', address.agent, record?.fence ?? deps.clock.now());
  const message = `@${address.agent} has failed: ${error.message}`;
  await deps.log.append(address, [
    { id, author: SYSTEM_AUTHOR, to: [], kind: 'error', body: { code: error.code, message } },
  ]);
  deps.onWarning(error, `@${address.agent} in ${address.conversation} has failed`);
  deps.metrics.count('actors_failed', { tenant: address.tenant, code: error.code });
  // Done after the event is logged, because nobody would notice an agent that failed without one.
  const { state } = await changeAvailability(deps, address, { type: 'BREAK' });
  publishAvailability(deps, address, 'BREAK', state);
}
