import { type ErrorCode, TroupeError } from '../../errors.ts';
import { type ActorAddress, type ActorRecord, runtimeId, SYSTEM_AUTHOR } from '../../events/index.ts';
import type { WakeOutcome } from '../../queue/router.ts';
import type { ActorPatch } from '../../store/store.ts';
import { changeAvailability } from './change-availability.ts';
import type { EngineDeps } from './engine-deps.ts';
import { holdLease, type Lease } from './lease.ts';
import type { AgentRuntime } from './agent-runtime.ts';
import { pinTurn } from '../turn/pin-turn.ts';
import { catchUp } from '../log/read-view.ts';
import type { LiveActor } from './registry.ts';
import { runTurn } from '../turn/run-turn.ts';
import { importOwner } from './settle-imported.ts';
import { sendOutgoing } from '../tasks/task-events.ts';
import { publishAvailability } from '../turn/transition.ts';

/** Before an actor whose lease was lost here is looked at again. */
const LOST_PAUSE_MS = 1_000;

/**
 * What a wake does: lease -> flush -> pin -> run -> commit, until there is nothing to do, then release and look again.
 * Any step may be the last one this process takes; whoever comes next goes on from the record.
 */
export async function activate(deps: EngineDeps, address: ActorAddress): Promise<WakeOutcome> {
  const runtime = deps.agents.get(address.agent);
  if (!runtime) return { kind: 'done' };
  const entry = await deps.admission.enter(address, runtime.profile.provider);
  if (entry.kind === 'full') return { kind: 'busy', retryInMs: entry.retryInMs };
  try {
    return await activateMember(deps, address, runtime);
  } finally {
    await entry.leave();
  }
}

async function activateMember(
  deps: EngineDeps,
  address: ActorAddress,
  runtime: AgentRuntime,
): Promise<WakeOutcome> {
  const { clock } = deps;
  // Whoever reaches the queue may forge wakes: of what does not exist no record is made.
  if (!deps.registry.find(address) && (await deps.store.head(address)) === 0) return { kind: 'done' };
  const isLost = await wasLost(deps, address);
  const acquired = await acquire(deps, address);
  if (acquired.kind === 'busy') {
    const wait = Math.min(Math.max(acquired.until - clock.now(), 0), 1_000);
    return { kind: 'busy', retryInMs: wait + Math.floor(deps.random() * 50), isBegun: true };
  }
  const lease = holdLease(deps, acquired.record);
  deps.metrics.change('leases_held', 1);
  try {
    // A paused actor still publishes what it has committed; one that is set aside cannot be trusted to.
    if (acquired.record.parked === 'failed') await release(lease);
    else if (isLost && (await isPoison(deps, lease))) await giveUp(deps, lease, address);
    else await work(deps, lease, runtime);
  } catch (error) {
    await settleFailure(deps, lease, address, error);
  } finally {
    lease.stop();
    deps.metrics.change('leases_held', -1);
  }
  // This process ends with the turn still pinned: the wake is kept for another.
  if (deps.stopping.aborted && lease.record.turn !== null)
    return { kind: 'busy', retryInMs: 0, isBegun: true };
  // A lease that ran out while the store was silent has perhaps no new holder, and then nobody else has this wake.
  if (lease.isLost) return { kind: 'busy', retryInMs: LOST_PAUSE_MS, isBegun: true };
  // A message between the last look and the release would otherwise wait for the sweeper.
  if (lease.record.parked === null && !lease.signal.aborted) await lookAgain(deps, address, lease.record);
  return { kind: 'done' };
}

async function work(deps: EngineDeps, lease: Lease, runtime: AgentRuntime): Promise<void> {
  const live = deps.registry.enter(lease.record, deps.clock.now());
  live.lease = lease;
  try {
    for (;;) {
      const published = await flushOutbox(deps, lease);
      await fireTimers(deps, lease);
      if (deps.stopping.aborted) throw deps.stopping.reason;
      // Parked while the last turn ran: it was finished and published, and no other begins.
      if (lease.record.parked !== null) return release(lease, { state: { outbox: [], posts: [] } });
      const resumed = lease.record.turn !== null;
      const turn = resumed
        ? await resumeTurn(deps, lease, live)
        : await pinTurn({ deps, lease, runtime, live }, published);
      if (!turn) return;
      await runTurn({ deps, lease, runtime, live, turn, resumed });
    }
  } finally {
    deps.registry.leave(live, lease.record.lastTurn, deps.clock.now());
  }
}

/** Publishes what was committed; returns up to where. Appending twice is harmless; the record forgets both when it pins. */
async function flushOutbox(deps: EngineDeps, lease: Lease): Promise<number> {
  const { outbox, posts, tenant } = lease.record;
  const appended = outbox.length > 0 ? await deps.log.append(lease.record, outbox) : [];
  await sendOutgoing(deps, tenant, posts);
  return appended.at(-1)?.event.seq ?? 0;
}

/** Posts what has come due before the next turn looks at the log. A timer is forgotten after its posts are stored. */
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

/** A turn that was pinned before: count the attempt first, so that a crash loop is seen, then take the same inputs. */
async function resumeTurn(deps: EngineDeps, lease: Lease, live: LiveActor) {
  const pinned = lease.record.turn;
  if (!pinned) return null;
  const turn = { ...pinned, attempt: pinned.attempt + 1 };
  await lease.write({ state: { turn } });
  await catchUp(deps.log, live.address, live, turn.upTo);
  return turn;
}

/**
 * Whether the last holder never gave it back and had no turn pinned, whose starts are counted. Asked where nothing is
 * known of the actor here, as after any loss: a warm one needs no further look.
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

/** Counted before anything is read, so that what ends a process in the middle of its reading is seen. */
async function isPoison({ limits }: EngineDeps, lease: Lease): Promise<boolean> {
  const lost = lease.record.lost + 1;
  await lease.write({ state: { lost } });
  return lost > limits.maxAttempts;
}

/** One conversation must not end one process after the other; `resume` has it tried again. */
async function giveUp(deps: EngineDeps, lease: Lease, address: ActorAddress): Promise<void> {
  const times = lease.record.lost;
  const message = `its process was lost ${times} times before a turn began (limits.maxAttempts ${deps.limits.maxAttempts}): it was killed, or stood still over this conversation, each time`;
  await markFailed(deps, address, lease.record, new TroupeError('poison', message, { lost: times }));
  await release(lease, { state: { lost: 0 } });
}

async function acquire(deps: EngineDeps, address: ActorAddress) {
  const { store, clock, limits } = deps;
  const owner = `${deps.process}:${Math.floor(deps.random() * 2 ** 40).toString(36)}`;
  const now = clock.now();
  const first = await store.acquire(address, { owner, now, until: now + limits.leaseMs });
  if (first.kind === 'acquired' || !limits.soleOwner) return first;
  // The directory is ours alone and an actor is activated once at a time, so a lease found here is that of a dead
  // process, or one of ours whose answer was lost. Only an import holds leases beside activations.
  const held = await store.readActor(address);
  if (!held || held.owner === importOwner(deps.process)) return first;
  return store.acquire(address, { owner, now: held.until + 1, until: now + limits.leaseMs });
}

async function release(lease: Lease, patch: ActorPatch = {}): Promise<void> {
  await lease.write({ owner: '', until: 0, ...patch });
}

async function lookAgain(deps: EngineDeps, address: ActorAddress, { processed }: ActorRecord): Promise<void> {
  const head = await deps.store.head(address);
  if (head <= processed) return;
  const missed = await deps.store.addressed(address, { after: processed, upTo: head });
  if (missed.length > 0) await deps.router.wake(address);
}

const AGENT_FAILURES: readonly ErrorCode[] = [
  'actor_corrupt',
  'store_corrupt',
  'event_conflict',
  'event_invalid',
  'provider_unusable',
];

/**
 * A lost lease is somebody else's work now. What trying again can never mend (a corrupt record, an id of ours that holds
 * something else) sets the actor aside, visibly, and leaves the others alone.
 * Anything else (a store that is away, a shutdown) gives the lease back with the turn still pinned.
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
    // Who was paused for longer than a lease may find its ids taken by its successor: then nothing is wrong with the actor.
    if (!(await stillHeld(deps, lease))) return;
    await markFailed(deps, address, lease.record, error).catch((again: unknown) =>
      deps.onWarning(again, 'park'),
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

/** An orderly stop is not a crash: it must not bring the turn nearer to being given up. */
async function uncountAttempt(lease: Lease): Promise<void> {
  const { turn } = lease.record;
  if (turn) await lease.write({ state: { turn: { ...turn, attempt: Math.max(0, turn.attempt - 1) } } });
}

export async function markFailed(
  deps: EngineDeps,
  address: ActorAddress,
  record: Pick<ActorRecord, 'fence'> | null,
  error: TroupeError,
): Promise<void> {
  // Without a readable record there is no fence; the time tells this notice from earlier ones just as well.
  const id = runtimeId('failed', address.agent, record?.fence ?? deps.clock.now());
  const message = `@${address.agent} has failed: ${error.message}`;
  await deps.log.append(address, [
    { id, author: SYSTEM_AUTHOR, to: [], kind: 'error', body: { code: error.code, message } },
  ]);
  deps.onWarning(error, `@${address.agent} in ${address.conversation} has failed`);
  deps.metrics.count('actors_failed', { tenant: address.tenant, code: error.code });
  // After the notice: an actor that is set aside in silence is found by nobody.
  const { state } = await changeAvailability(deps, address, { type: 'BREAK' });
  publishAvailability(deps, address, 'BREAK', state);
}
