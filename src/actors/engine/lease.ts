import { TroupeError } from '../../errors.ts';
import type { ActorRecord, TurnId } from '../../events/index.ts';
import type { Clock } from '../../clock.ts';
import type { ActorPatch, Store } from '../../store/store.ts';
import type { Redaction } from '../log/redaction.ts';

/**
 * A held lease on one actor, and the only door through which its record is written.
 *
 * Owns the latest record and the renewal. Does not own what is written.
 *  L1  Every write names the fence under which the lease was taken; a lost fence throws `lease_lost` and aborts `signal`.
 *  L2  Writes are one at a time, so a renewal never races a commit of the same holder.
 *  L3  If no renewal succeeds before the lease ends on the monotonic clock, the holder stops by itself, whether the
 *      store refused or never answered.
 *  L4  A request to stop concerns one turn: `signal` aborts for that turn, however early the request arrives, and is
 *      fresh for the next turn under the same lease.
 */
export interface Lease {
  readonly record: ActorRecord;
  readonly signal: AbortSignal;
  /** Another process has the lease, or may have it. `signal` has only the first reason to abort. */
  readonly isLost: boolean;
  /** Throws `lease_lost`. */
  write(patch: ActorPatch): Promise<ActorRecord>;
  /** As `write`, but null if the pinned turn has been asked to stop. */
  writeUnlessCancelled(patch: ActorPatch): Promise<ActorRecord | null>;
  /** Stops this turn if it is running now or is the next one pinned. */
  abort(turn: TurnId): void;
  /** Interrupts the running work with this reason. The record can still be written, to give the lease back. */
  interrupt(reason: TroupeError): void;
  stop(): void;
}

/** An abort without a reason creates a DOMException with a stack, which costs 20 us a turn. */
const STOPPED = 'stopped';

export interface LeaseDeps {
  store: Store;
  clock: Clock;
  limits: { leaseMs: number };
  /** Applied to the drafts that the record keeps for the log. */
  redaction?: Redaction | undefined;
  onWarning: (error: unknown, where: string) => void;
}

export function holdLease(deps: LeaseDeps, acquired: ActorRecord): Lease {
  const { store, redaction } = deps;
  let working = new AbortController();
  let gone = false;
  let asked: TurnId | null = null;
  const stopped = new AbortController();
  let record = acquired;
  let queue: Promise<unknown> = Promise.resolve();

  function lost(): TroupeError {
    const error = takenOver(record);
    gone = true;
    working.abort(error);
    return error;
  }

  function accept(next: ActorRecord): void {
    const ended = record.turn !== null && record.turn.id !== next.turn?.id;
    if (ended && working.signal.aborted && !gone) working = new AbortController();
    record = next;
    const turn = record.turn?.id ?? null;
    if (turn === null || (turn !== asked && turn !== record.cancel)) return;
    working.abort(new TroupeError('aborted', `turn ${turn} was asked to stop`));
  }

  async function attempt(given: ActorPatch, notCancelled: boolean): Promise<ActorRecord | null> {
    const patch = redaction?.patch(given) ?? given;
    const next = await store.update(record, patch, notCancelled ? { notCancelled: true } : {});
    if (next) {
      accept(next);
      return next;
    }
    const current = await store.readActor(record);
    if (!current || current.fence !== record.fence || current.owner !== record.owner) throw lost();
    if (notCancelled && current.cancel !== null && current.cancel === current.turn?.id) {
      accept(current);
      return null;
    }
    throw lost();
  }

  function enqueue(patch: ActorPatch, notCancelled: boolean): Promise<ActorRecord | null> {
    // Rejected at once, because an earlier write may never be answered.
    if (gone) return Promise.reject(lost());
    const result = queue.then(() => attempt(patch, notCancelled));
    queue = result.catch(() => undefined); // the caller sees the error; the queue goes on
    return result;
  }

  async function write(patch: ActorPatch): Promise<ActorRecord> {
    const next = await enqueue(patch, false);
    if (!next) throw lost();
    return next;
  }

  accept(acquired);
  const lease: Lease = {
    get record() {
      return record;
    },
    get signal() {
      return working.signal;
    },
    get isLost() {
      return gone;
    },
    write,
    writeUnlessCancelled: (patch) => enqueue(patch, true),
    abort(turn) {
      asked = turn;
      accept(record);
    },
    interrupt: (reason) => working.abort(reason),
    stop: () => stopped.abort(STOPPED),
  };
  void keepRenewed(deps, lease, { stopped: stopped.signal, onExpired: () => void lost() });
  return lease;
}

function takenOver({ agent, conversation }: ActorRecord): TroupeError {
  return new TroupeError('lease_lost', `another process took over @${agent}`, { agent, conversation });
}

/** Renews the lease three times in its length, until it is stopped, given back or lost. */
async function keepRenewed(
  { clock, limits, onWarning }: LeaseDeps,
  lease: Lease,
  { stopped, onExpired }: { stopped: AbortSignal; onExpired: () => void },
): Promise<void> {
  let expires = clock.monotonic() + limits.leaseMs;

  async function renew(): Promise<void> {
    const started = clock.monotonic();
    const answered = new AbortController();
    const renewal = lease.write({ until: clock.now() + limits.leaseMs });
    // After the process hung, the lease may be over without another holder: one renewal is still tried.
    const late = clock.sleep(Math.max(expires - started, limits.leaseMs / 3), answered.signal);
    const answer = await Promise.race([renewal, late]).finally(() => answered.abort(STOPPED));
    if (!answer)
      throw new TroupeError('store_unavailable', 'the store did not answer before the lease ended');
    expires = started + limits.leaseMs;
  }

  for (;;) {
    await clock.sleep(limits.leaseMs / 3, stopped, 'upkeep');
    if (stopped.aborted) return;
    try {
      if (lease.record.owner === '') return; // given back during the sleep
      await renew();
    } catch (error) {
      onWarning(error, 'lease renewal');
      if (lease.isLost) return;
      if (clock.monotonic() >= expires) return onExpired();
    }
  }
}
