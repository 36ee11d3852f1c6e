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
 *  L3  If no renewal succeeded by the end of the lease on the monotonic clock, the holder stops by itself, whether the
 *      store refused or never answered.
 *  L4  A request to stop is for one turn: `signal` aborts for that turn, however early it is heard, and is fresh for the
 *      next turn under the same lease.
 */
export interface Lease {
  readonly record: ActorRecord;
  readonly signal: AbortSignal;
  /** Another process has it, or may have: `signal` can say only what came first. */
  readonly isLost: boolean;
  /** Throws `lease_lost`. */
  write(patch: ActorPatch): Promise<ActorRecord>;
  /** As `write`, but null if the pinned turn was asked to stop meanwhile. */
  writeUnlessCancelled(patch: ActorPatch): Promise<ActorRecord | null>;
  /** Stops the work on this turn, if it is the one at work or the next one pinned. */
  abort(turn: TurnId): void;
  /** Breaks off whatever is at work, with this reason; the record may still be written, to give it back. */
  interrupt(reason: TroupeError): void;
  stop(): void;
}

/** Without a reason of its own, an abort makes a DOMException with a stack: 20 us a turn. */
const STOPPED = 'stopped';

export interface LeaseDeps {
  store: Store;
  clock: Clock;
  limits: { leaseMs: number };
  /** Of what the record has for the log. */
  redaction?: Redaction | undefined;
  onWarning: (error: unknown, where: string) => void;
}

export function holdLease(deps: LeaseDeps, acquired: ActorRecord): Lease {
  const { store, clock, limits, redaction } = deps;
  let working = new AbortController();
  let gone = false;
  let asked: TurnId | null = null;
  const stopped = new AbortController();
  let record = acquired;
  let queue: Promise<unknown> = Promise.resolve();
  let expires = clock.monotonic() + limits.leaseMs;

  function lost(): TroupeError {
    const error = new TroupeError('lease_lost', `another process took over @${record.agent}`, {
      agent: record.agent,
      conversation: record.conversation,
    });
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
    // Not behind a write that is never answered.
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

  async function renew(): Promise<void> {
    const started = clock.monotonic();
    const answered = new AbortController();
    const renewal = write({ until: clock.now() + limits.leaseMs });
    // A process that stood still may find the lease over and nobody else at work: it may still ask.
    const late = clock.sleep(Math.max(expires - started, limits.leaseMs / 3), answered.signal);
    const answer = await Promise.race([renewal, late]).finally(() => answered.abort(STOPPED));
    if (!answer)
      throw new TroupeError('store_unavailable', 'the store did not answer before the lease ended');
    expires = started + limits.leaseMs;
  }

  async function renewLoop(): Promise<void> {
    for (;;) {
      await clock.sleep(limits.leaseMs / 3, stopped.signal);
      if (stopped.signal.aborted) return;
      try {
        if (record.owner === '') return; // given back while this waited
        await renew();
      } catch (error) {
        deps.onWarning(error, 'lease renewal');
        if (gone) return;
        if (clock.monotonic() >= expires) return void lost();
      }
    }
  }

  accept(acquired);
  void renewLoop();
  return {
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
}
