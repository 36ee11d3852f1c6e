import { TroupeError } from '../../base/errors.ts';
import type { ActorRecord, TurnId } from '../../events/index.ts';
import type { Clock } from '../../base/clock.ts';
import type { ActorPatch, RecordStep, StepEvents, Stepped, Store } from '../../store/store.ts';
import type { ConversationLog, StepDraft } from '../log/conversation-log.ts';
import type { Redaction } from '../../events/redaction.ts';

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
 *  L5  A lease of a resting actor is taken by its first step, if nobody has had it since: until then nothing was written that
 *      counts, and whoever wants it meanwhile gets it.
 */
export interface Lease {
  readonly record: ActorRecord;
  readonly signal: AbortSignal;
  /** False until the first step of a resting actor has taken it. */
  readonly isHeld: boolean;
  /** Takes the lease of an actor at rest, before what is written beside its record. Throws `lease_lost`. */
  hold(): Promise<void>;
  /** Another process has the lease, or may have it. `signal` has only the first reason to abort. */
  readonly isLost: boolean;
  /** Throws `lease_lost`. */
  write(patch: ActorPatch): Promise<ActorRecord>;
  /** `write` with events that count only together with it. Null with `notAborted` if the pinned turn was asked to stop. */
  step(step: LeaseStep): Promise<Stepped | null>;
  /** What the step that gave the lease back has left; null if none did. */
  readonly left: 'nothing' | 'messages' | null;
  /** Seq of the last event of the actor's conversation that a step has appended here; 0: none. */
  readonly published: number;
  /** Stops this turn if it is running now or is the next one pinned. */
  abort(turn: TurnId): void;
  /** Interrupts the running work with this reason. The record can still be written, to give the lease back. */
  interrupt(reason: TroupeError): void;
  stop(): void;
}

/** An abort without a reason creates a DOMException with a stack, which costs 20 us a turn. */
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

/** The lease of an actor at rest, on the record with which it rests: its first step takes it for `owner`. */
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
  /** Who takes it with the first step. */
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
    // Rejected at once, because an earlier write may never be answered.
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

  /** The timers of a record keep drafts for the log. */
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

/** Renews the lease three times in its length, until it is stopped, given back or lost. */
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
      if (clock.monotonic() < expires) continue;
      lease.lost();
      return;
    }
  }
}
