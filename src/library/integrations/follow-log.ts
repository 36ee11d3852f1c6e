import type { Clock } from '../../base/clock.ts';
import type { KeyValue } from '../../base/key-value.ts';
import { Cursors, deliver, type Follower, type FollowerStatus, pauseAfter } from './deliver.ts';
import type { IntegrationTroupe } from './integration.ts';

export { type Follower, type FollowerStatus, RetryAfter } from './deliver.ts';

/** What `followLog` needs. */
export interface FollowParts {
  /** The conversations of one tenant. */
  troupe: Pick<IntegrationTroupe, 'watch' | 'conversations' | 'events'>;
  /** Entries of the same tenant. */
  keyValue: KeyValue;
  /** Source of time. Default: the clock of the system. */
  clock: Clock;
  /** Source of randomness, for the spread of retries. */
  random: () => number;
  /** Id of this process. */
  owner: string;
  /** Receives what no event records, with the place. */
  onWarning: (error: unknown, where: string) => void;
}

/** A running follower. */
export interface LogFollower {
  /** Its state. */
  status(): FollowerStatus;
  /** Resolves when this process has nothing left to deliver. Resolves at once if another process delivers, or after `close`. */
  idle(): Promise<void>;
  /** Waits for deliveries under way, for a limited time. */
  close(): Promise<void>;
}

/** Length of a claim: one process delivers for this long. */
const PERIOD_MS = 30_000;
/** No delivery starts within this time before the end of a claim, so that the next process reads saved cursors. */
const MARGIN_MS = 200;
const STAND_BY_MS = 10_000;
const SCAN_MS = 20_000;
/** An event may be stored this long after its time, or by a machine whose clock is this far behind. */
const OVERLAP_MS = 120_000;
/** The mark is written after it has moved this far. */
const MARK_STEP_MS = 60_000;
const STORE_PAUSE_MS = 5_000;
/** Conversations delivered at once, each one event at a time. */
const CONCURRENCY = 4;
const MAX_NEWS = 10_000;
const FIRST_LISTED = 64;
/** `close` waits this long for deliveries, then aborts them and waits this long again. */
const GRACE_MS = 3_000;

interface Scan {
  startedAt: number;
  /** Oldest first. */
  owed: Set<string>;
}

/**
 * Delivers each event of the log to a follower. The log is the outbox: only the follower's position is stored.
 *  F1  Each event since the follower began is delivered at least once, across crashes, in order of seq per conversation.
 *      A cursor moves after `deliver` has resolved. It is written every 50 events or 200 ms, and at the end of a
 *      conversation. Imported events dated before `since` are not delivered; those dated before the mark may not be.
 *  F2  A notice of an event (`watch`) marks its conversation as news. Notices may be lost, so every 20 s conversations are
 *      listed, newest first, down to the mark less an overlap.
 *  F3  Everything before the mark, entry `follow/<follower>`, is delivered. It is the start of the last listing that was
 *      delivered completely.
 *  F4  One process at a time delivers for a follower, by a claim of 30 s. A process that closes leaves the rest of its
 *      claim to another, entry `left/<follower>`. Two processes at once may deliver an event twice; they do no other harm.
 *  F5  After a failure the follower pauses, longer each time, and retries only the failed event until it is delivered. Then
 *      the others go on. Other followers are not delayed.
 *  F6  Memory is bounded: news beyond `MAX_NEWS` is dropped like a lost notice, cursors are kept for a bounded number of
 *      conversations, events are read in pages. A listing holds all conversations to deliver.
 *  F7  A deleted conversation is forgotten. A new one of the same id has another event at the cursor.
 */
export function followLog(parts: FollowParts, follower: Follower): LogFollower {
  return new Following(parts, follower);
}

class Following implements LogFollower {
  readonly #parts: FollowParts;
  readonly #follower: Follower;
  readonly #cursors: Cursors;
  readonly #signal = new Signal();
  readonly #closing = new AbortController();
  /** Aborts deliveries under way. */
  readonly #abort = new AbortController();
  readonly #news = new Set<string>();
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #idlers = new Set<() => void>();
  readonly #unwatch: () => void;
  readonly #run: Promise<void>;
  #scan: Scan | null = null;
  #scanAt = 0;
  #mark: number;
  #storedMark: string | null = null;
  /** `unknown` until the first claim is answered. */
  #role: 'unknown' | 'holder' | 'standby' = 'unknown';
  #until = 0;
  /** The conversation whose delivery failed. */
  #blocked: string | null = null;
  #failures = 0;
  #retryAt = 0;
  #lastError: string | null = null;
  #isStoreDown = false;

  constructor(parts: FollowParts, follower: Follower) {
    this.#parts = parts;
    this.#follower = follower;
    this.#mark = follower.since;
    this.#cursors = new Cursors(parts.keyValue, follower.name, () => parts.clock.now());
    this.#unwatch = parts.troupe.watch((notice) => {
      if (notice.type !== 'event' || this.#role !== 'holder') return;
      const { conversation, at } = notice.event;
      if (at < follower.since || !follower.wants(conversation)) return;
      if (follower.cares?.(notice.event) ?? true) this.#addNews(conversation);
    });
    this.#run = this.#work();
  }

  status(): FollowerStatus {
    const behind = new Set([...this.#news, ...this.#underWay.keys(), ...(this.#scan?.owed ?? [])]);
    return {
      behind: behind.size,
      failures: this.#failures,
      lastError: this.#lastError,
      retryAt: this.#failures > 0 ? this.#retryAt : null,
    };
  }

  async idle(): Promise<void> {
    while (!this.#isIdle()) await new Promise<void>((resolve) => this.#idlers.add(resolve));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#unwatch();
    this.#signal.raise();
    await this.#untilDelivered();
    this.#abort.abort();
    await this.#untilDelivered();
    await this.#run;
    await this.#leave();
    this.#notifyIdlers();
  }

  async #work(): Promise<void> {
    const { clock } = this.#parts;
    while (!this.#closing.signal.aborted) {
      try {
        if (await this.#claim()) await this.#hold();
        else await this.#sleep(STAND_BY_MS * (0.5 + this.#parts.random() / 2));
        this.#isStoreDown = false;
      } catch (error) {
        if (!this.#isStoreDown) this.#parts.onWarning(error, `${this.#follower.name}: the store`);
        this.#isStoreDown = true;
        await clock.sleep(STORE_PAUSE_MS, this.#closing.signal);
      }
    }
  }

  async #claim(): Promise<boolean> {
    const { keyValue, clock, owner } = this.#parts;
    const task = `follow/${this.#follower.name}`;
    const now = clock.now();
    const isClaimed = await keyValue.claim(task, { owner, now, until: now + PERIOD_MS });
    const until = isClaimed ? now + PERIOD_MS : await takeLeft(keyValue, this.#follower.name, { owner, now });
    if (until === null) {
      this.#role = 'standby';
      this.#news.clear();
      this.#scan = null;
      this.#notifyIdlers();
      return false;
    }
    // After a shorter gap no other process can have held the claim.
    if (this.#role !== 'holder' || now - this.#until >= PERIOD_MS / 2) {
      this.#cursors.forgetAll();
      this.#storedMark = await keyValue.get(task);
      this.#mark = timeOf(this.#storedMark) ?? this.#follower.since;
      this.#scan = null;
      this.#scanAt = 0;
    }
    this.#role = 'holder';
    this.#until = until;
    return true;
  }

  /** Leaves the rest of the claim to another process if all cursors are saved. */
  async #leave(): Promise<void> {
    const { keyValue, clock, onWarning } = this.#parts;
    if (this.#role !== 'holder' || this.#underWay.size > 0 || clock.now() >= this.#until) return;
    try {
      await leavePeriod(keyValue, this.#follower.name, this.#until);
    } catch (error) {
      onWarning(error, `${this.#follower.name}: the store`);
    }
  }

  async #hold(): Promise<void> {
    const { clock } = this.#parts;
    while (this.#isMine()) {
      if (this.#scan?.owed.size === 0) await this.#endScan();
      if (this.#scan === null && this.#blocked === null && clock.now() >= this.#scanAt) {
        await this.#startScan();
        continue;
      }
      while (this.#underWay.size < CONCURRENCY) {
        const next = this.#next();
        if (next === null) break;
        this.#start(next);
      }
      this.#notifyIdlers();
      const due = [this.#until - MARGIN_MS];
      if (this.#blocked !== null) due.push(this.#underWay.has(this.#blocked) ? Infinity : this.#retryAt);
      else if (this.#scan === null) due.push(this.#scanAt);
      await this.#signal.wait(clock, Math.min(...due) - clock.now());
    }
    await this.#sleep(this.#until - clock.now() + 1);
  }

  #isMine(): boolean {
    return !this.#closing.signal.aborted && this.#parts.clock.now() < this.#until - MARGIN_MS;
  }

  async #startScan(): Promise<void> {
    const startedAt = this.#parts.clock.now();
    const rows = await listSince(this.#parts.troupe, Math.max(this.#follower.since, this.#mark - OVERLAP_MS));
    const owed = new Set<string>();
    for (const { id, head, at } of rows.toReversed()) {
      if (!this.#follower.wants(id) || this.#cursors.isAt(id, { head, at })) continue;
      owed.add(id);
      // The delivery under way may have read the conversation before this listing.
      if (this.#underWay.has(id)) this.#addNews(id);
    }
    this.#scan = { startedAt, owed };
    this.#scanAt = startedAt + SCAN_MS;
  }

  async #endScan(): Promise<void> {
    if (this.#scan === null) return;
    this.#mark = this.#scan.startedAt;
    this.#scan = null;
    const stored = this.#storedMark;
    if (this.#mark - (timeOf(stored) ?? 0) < MARK_STEP_MS) return;
    const key = `follow/${this.#follower.name}`;
    this.#storedMark = await this.#parts.keyValue.compareAndSet(key, stored, String(this.#mark));
  }

  /** The next conversation: the failed one, or one with news, or a listed one. */
  #next(): string | null {
    if (this.#blocked !== null) {
      const isDue = this.#parts.clock.now() >= this.#retryAt && !this.#underWay.has(this.#blocked);
      return isDue ? this.#blocked : null;
    }
    for (const id of this.#news) if (!this.#underWay.has(id)) return id;
    for (const id of this.#scan?.owed ?? []) if (!this.#underWay.has(id)) return id;
    return null;
  }

  #start(conversation: string): void {
    this.#news.delete(conversation);
    const done = this.#deliver(conversation).finally(() => {
      this.#underWay.delete(conversation);
      this.#signal.raise();
    });
    this.#underWay.set(conversation, done);
  }

  async #deliver(conversation: string): Promise<void> {
    const delivered = () => {
      if (this.#blocked === conversation) this.#unblock();
    };
    try {
      const isDone = await deliver(conversation, {
        troupe: this.#parts.troupe,
        cursors: this.#cursors,
        follower: this.#follower,
        mayContinue: () => this.#isMine() && (this.#blocked === null || this.#blocked === conversation),
        onDelivered: delivered,
        signal: this.#abort.signal,
      });
      if (!isDone) return this.#addNews(conversation);
      delivered();
      if (!this.#news.has(conversation)) this.#scan?.owed.delete(conversation);
    } catch (error) {
      this.#addNews(conversation);
      if (!this.#closing.signal.aborted) this.#fail(conversation, error);
    }
  }

  #fail(conversation: string, error: unknown): void {
    // Failures of other deliveries under way at the first failure do not count.
    if (this.#blocked !== null && this.#blocked !== conversation) return;
    const { clock, random, onWarning } = this.#parts;
    this.#blocked = conversation;
    this.#failures += 1;
    this.#lastError = error instanceof Error ? error.message : String(error);
    this.#retryAt = clock.now() + pauseAfter(error, this.#failures, random);
    if (this.#failures === 1) onWarning(error, this.#follower.name);
    this.#follower.onFailed?.(this.status());
  }

  #unblock(): void {
    this.#blocked = null;
    this.#failures = 0;
    this.#lastError = null;
    this.#signal.raise();
  }

  #addNews(conversation: string): void {
    if (this.#news.size < MAX_NEWS) this.#news.add(conversation);
    this.#signal.raise();
  }

  #isIdle(): boolean {
    if (this.#closing.signal.aborted || this.#role === 'standby') return true;
    const isQuiet = this.#news.size === 0 && this.#underWay.size === 0 && this.#blocked === null;
    return this.#role === 'holder' && isQuiet && this.#scan === null && this.#scanAt > 0;
  }

  #notifyIdlers(): void {
    if (!this.#isIdle()) return;
    for (const wake of this.#idlers) wake();
    this.#idlers.clear();
  }

  async #untilDelivered(): Promise<void> {
    if (this.#underWay.size === 0) return;
    const over = new AbortController();
    const all = Promise.all(this.#underWay.values()).then(() => over.abort());
    await Promise.race([all, this.#parts.clock.sleep(GRACE_MS, over.signal)]);
  }

  #sleep(ms: number): Promise<void> {
    return this.#parts.clock.sleep(Math.max(1, ms), this.#closing.signal);
  }
}

/** Conversations with an event at `from` or later, newest first. */
async function listSince(
  troupe: Pick<IntegrationTroupe, 'conversations'>,
  from: number,
): ReturnType<IntegrationTroupe['conversations']> {
  for (let limit = FIRST_LISTED; ; limit *= 4) {
    const rows = await troupe.conversations(limit);
    const oldest = rows.at(-1);
    if (rows.length < limit || (oldest && oldest.at < from)) return rows.filter(({ at }) => at >= from);
  }
}

/** Null if the text is not a time. */
function timeOf(stored: string | null): number | null {
  const time = stored === null ? Number.NaN : Number(stored);
  return Number.isSafeInteger(time) ? time : null;
}

type PeriodEntries = Pick<KeyValue, 'get' | 'compareAndSet'>;

/** Shorter remainders are not taken. */
const LEAST_MS = 200;

/** Takes the rest of a claim that another process has left. One process gets it: returns its end, ms, or null. */
export async function takeLeft(
  keyValue: PeriodEntries,
  task: string,
  { owner, now }: { owner: string; now: number },
): Promise<number | null> {
  const left = await keyValue.get(keyOf(task));
  const until = Number(left ?? 0);
  if (!Number.isSafeInteger(until) || until <= now + LEAST_MS) return null;
  const taken = `taken by ${owner}`;
  return (await keyValue.compareAndSet(keyOf(task), left, taken)) === taken ? until : null;
}

/** Leaves the rest of a claim to another process, since a claim cannot be released. */
export async function leavePeriod(keyValue: PeriodEntries, task: string, until: number): Promise<void> {
  await keyValue.compareAndSet(keyOf(task), await keyValue.get(keyOf(task)), String(until));
}

function keyOf(task: string): string {
  return `left/${task}`;
}

/** Wakes one waiter. Raised without a waiter, it ends the next wait at once. */
export class Signal {
  #isRaised = false;
  #wake: () => void = () => {};

  /** Wakes the waiter. */
  raise(): void {
    this.#isRaised = true;
    this.#wake();
  }

  /** Resolves when the signal is raised, or after `ms`. */
  async wait(clock: Clock, ms: number): Promise<void> {
    if (!this.#isRaised && ms > 0) {
      const awake = new AbortController();
      this.#wake = () => awake.abort();
      await clock.sleep(ms, awake.signal, 'upkeep');
      this.#wake = () => {};
    }
    this.#isRaised = false;
  }
}
