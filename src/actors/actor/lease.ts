import { TroupeError } from '../../base/errors.ts';
import type { ActorRecord, TurnId } from '../../events/index.ts';
import type { Clock } from '../../base/clock.ts';
import type { ActorPatch, RecordStep, StepEvents, Stepped, Store } from '../../store/store.ts';
import type { ConversationLog, StepDraft } from '../log/conversation-log.ts';
import type { Redaction } from '../../events/redaction.ts';

/**
 * A lease on one actor. Its record is written only through this object.
 *
 * Owns the latest record and the renewal of the lease. Does not own what is written.
 *  L1  Every write requires the fence under which the lease was taken. If the fence has changed, the write throws `lease_lost`
 *      and `signal` aborts.
 *  L2  Writes run one at a time, so a renewal never races a commit of the same holder.
 *  L3  If no renewal succeeds before the lease ends on the monotonic clock, the holder stops by itself, whether the
 *      store refused or never answered.
 *  L4  A request to abort is for one turn: `signal` aborts for that turn, even if the request arrived before the turn began.
 *      The next turn under the same lease has a new signal.
 *  L5  The first step of a resting actor takes its lease, if nobody has had it since the actor rested. Nothing that counts is
 *      written before this step, and until then another process can take the lease.
 */
export interface Lease {
  readonly record: ActorRecord;
  readonly signal: AbortSignal;
  /** False until the first step of a resting actor has taken it. */
  readonly isHeld: boolean;
  /** Takes the lease of a resting actor, before something is written beside its record. Throws `lease_lost`. */
  hold(): Promise<void>;
  /** Whether another process has the lease or may have it. `signal` keeps only the first reason for which it aborted. */
  readonly isLost: boolean;
  /** Writes a patch of the record. Throws `lease_lost`. */
  write(patch: ActorPatch): Promise<ActorRecord>;
  /** Like `write`, with events in the same write. Null if `notAborted` is set and the pinned turn is to be aborted. */
  step(step: LeaseStep): Promise<Stepped | null>;
  /** Set after a step that released the lease: whether messages for the actor were left unprocessed. */
  readonly left: 'nothing' | 'messages' | null;
  /** Seq of the last event that a step of this lease has in the log of the actor's conversation; 0 without one. */
  readonly published: number;
  /** Aborts this turn if it is running or if it is the next one pinned. */
  abort(turn: TurnId): void;
  /** Interrupts the running work with this reason. The record can still be written, to release the lease. */
  interrupt(reason: TroupeError): void;
  stop(): void;
}

/** Reason of aborts that need none. Without a reason a DOMException with a stack is created, which costs 20 us a turn. */
const STOPPED = 'stopped';

export interface LeaseStep extends Omit<RecordStep, 'events'> {
  events: readonly StepDraft[];
}

interface LeaseDeps {
  store: Store;
  log: Pick<ConversationLog, 'step'>;
  clock: Clock;
  limits: { leaseMs: number };
  /** Applied to the drafts that the record keeps for the log. */
  redaction?: Redaction | undefined;
  onWarning: (error: unknown, where: string) => void;
}

export function holdLease(deps: LeaseDeps, acquired: ActorRecord): Lease {
  const lease = new ActorLease(deps, acquired);
  lease.keep();
  return lease;
}

/** The lease of a resting actor, with the record with which it rests. The first step takes the lease for `owner`. */
export function restingLease(deps: LeaseDeps, record: ActorRecord, owner: string): Lease {
  return new ActorLease(deps, record, owner);
}

class ActorLease implements Lease {
  record: ActorRecord;
  left: Lease['left'] = null;
  published = 0;
  isLost = false;
  readonly stopped = new AbortController();
  readonly #deps: LeaseDeps;
  #working = new AbortController();
  #asked: TurnId | null = null;
  #queue: Promise<unknown> = Promise.resolve();
  /** The owner for which the first step takes the lease; null once it is taken. */
  #taker: string | null;

  constructor(deps: LeaseDeps, record: ActorRecord, taker: string | null = null) {
    this.#deps = deps;
    this.record = record;
    this.#taker = taker;
    this.#accept(record);
  }

  get isHeld(): boolean {
    return this.#taker === null;
  }

  keep(): void {
    void keepRenewed(this.#deps, this, this.stopped.signal);
  }

  get signal(): AbortSignal {
    return this.#working.signal;
  }

  async write(patch: ActorPatch): Promise<ActorRecord> {
    const made = await this.#enqueue(async () => {
      const record = await this.#deps.store.update(this.record, this.#redacted(patch));
      return record && { record };
    });
    if (!made) throw this.lost();
    return made.record;
  }

  async step({ events, patch, ...rest }: LeaseStep): Promise<Stepped | null> {
    const { log, store } = this.#deps;
    const made = await log.step(this.record.tenant, events, (ready, told) => {
      const step = this.#taking({ ...rest, patch: this.#redacted(patch), events: ready });
      const noted = (stored: StepEvents) => {
        this.#note(stored);
        return told(stored);
      };
      const write = () => store.step(this.record, { ...step, told: noted });
      return this.#enqueue(write, rest.expect?.notAborted);
    });
    if (made && rest.rests && made.record.owner === '') this.left = made.isAddressed ? 'messages' : 'nothing';
    return made;
  }

  async hold(): Promise<void> {
    if (!this.isHeld) await this.step({ patch: {}, events: [] });
  }

  abort(turn: TurnId): void {
    this.#asked = turn;
    this.#accept(this.record);
  }

  interrupt(reason: TroupeError): void {
    this.#working.abort(reason);
  }

  stop(): void {
    this.stopped.abort(STOPPED);
  }

  lost(): TroupeError {
    const error = takenOver(this.record);
    this.isLost = true;
    this.#working.abort(error);
    return error;
  }

  #taking(step: RecordStep): RecordStep {
    const { clock, limits } = this.#deps;
    if (this.#taker === null) return step;
    const now = clock.now();
    const patch = { ...step.patch, owner: this.#taker, until: now + limits.leaseMs };
    return { ...step, patch, expect: { ...step.expect, freeAt: now } };
  }

  #note({ appended, there }: StepEvents): void {
    for (const { conversation, seq } of [...appended, ...there])
      if (conversation === this.record.conversation) this.published = Math.max(this.published, seq);
  }

  #accept(next: ActorRecord): void {
    const { record } = this;
    const ended = record.turn !== null && record.turn.id !== next.turn?.id;
    if (ended && this.#working.signal.aborted && !this.isLost) this.#working = new AbortController();
    this.record = next;
    const turn = next.turn?.id ?? null;
    if (turn === null || (turn !== this.#asked && turn !== next.abort)) return;
    this.#working.abort(new TroupeError('aborted', `turn ${turn} was asked to stop`));
  }

  #enqueue<T extends { record: ActorRecord }>(
    make: () => Promise<T | null>,
    notAborted = false,
  ): Promise<T | null> {
    // Rejected without waiting for earlier writes, because the store may never answer them.
    if (this.isLost) return Promise.reject(this.lost());
    const result = this.#queue.then(() => this.#attempt(make, notAborted));
    this.#queue = result.catch(() => undefined); // the caller sees the error; the queue goes on
    return result;
  }

  async #attempt<T extends { record: ActorRecord }>(
    make: () => Promise<T | null>,
    notAborted: boolean,
  ): Promise<T | null> {
    const made = await make();
    if (made) {
      if (this.#taker !== null && made.record.owner === this.#taker) {
        this.#taker = null;
        this.keep();
      }
      this.#accept(made.record);
      return made;
    }
    if (this.#taker !== null) throw this.lost();
    const { record } = this;
    const current = await this.#deps.store.readActor(record);
    if (!current || current.fence !== record.fence || current.owner !== record.owner) throw this.lost();
    if (notAborted && current.abort !== null && current.abort === current.turn?.id) {
      this.#accept(current);
      return null;
    }
    throw this.lost();
  }

  /** Redacts the drafts in the timers of a record, which are sent to the log later. */
  #redacted(patch: ActorPatch): ActorPatch {
    const { redaction } = this.#deps;
    const timers = redaction && patch.state?.timers;
    if (!timers) return patch;
    const kept = timers.map((timer) => ({ ...timer, posts: redaction.posts(timer.posts) }));
    return { ...patch, state: { ...patch.state, timers: kept } };
  }
}

function takenOver({ agent, conversation }: ActorRecord): TroupeError {
  return new TroupeError('lease_lost', `another process took over @${agent}`, { agent, conversation });
}

/** Renews the lease at every third of its length, until it is stopped, released or lost. */
async function keepRenewed(
  { clock, limits, onWarning }: LeaseDeps,
  lease: ActorLease,
  stopped: AbortSignal,
): Promise<void> {
  let expires = clock.monotonic() + limits.leaseMs;

  async function renew(): Promise<void> {
    const started = clock.monotonic();
    const answered = new AbortController();
    const renewal = lease.write({ until: clock.now() + limits.leaseMs });
    // After the process hung, the lease may have ended without another holder, so one renewal is still tried.
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
      if (lease.record.owner === '') return; // released during the sleep
      await renew();
    } catch (error) {
      onWarning(error, 'lease renewal');
      if (lease.isLost) return;
      if (clock.monotonic() < expires) continue;
      lease.lost();
      return;
    }
  }
}
