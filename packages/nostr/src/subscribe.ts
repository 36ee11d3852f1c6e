import { type KeyValue, leavePeriod, takeLeft, toTroupeError, TroupeError } from './troupe.ts';
import { hashOfUrl, type HighWater } from './high-water.ts';
import { Intake, type IntakeParts } from './intake.ts';
import type { Filter, SignedEvent } from './nostr-event.ts';
import type { RelayLink } from './relay-link.ts';
import type { NostrSettings } from './settings.ts';

export interface SubscriptionParts extends Omit<
  IntakeParts,
  'link' | 'mark' | 'handled' | 'signal' | 'settings'
> {
  link: RelayLink;
  /** Loaded. */
  mark: HighWater;
  /** Seconds, of the first process that had this relay: where nothing was ever handled, what is older is not asked for. */
  startedAt: number;
  settings: IntakeParts['settings'] & Pick<NostrSettings, 'overlapMs'>;
  keyValue: KeyValue;
  owner: string;
  /** One process holds a relay for so long, then whoever is first. */
  claimMs: number;
  random: () => number;
  onWarning: (error: unknown, where: string) => void;
}

export interface Subscription {
  /** `waiting`: another process holds the relay. */
  status(): { state: 'waiting' | 'catching up' | 'live'; mark: number | null };
  /** Resolves when all that the relay had is in the log. */
  caughtUp(): Promise<void>;
  close(): Promise<void>;
}

/** What is asked for at once. */
const PAGE = 200;
/** Beside the stream the relay is asked so often for what is newest: it may forget to pass something on. */
const LOOK_MS = 60_000;
const SAVE_MS = 5_000;
const RETRY_MS = 5_000;

/**
 * One relay, followed by one process at a time, from where the log ends.
 * 1. After each connection the relay is asked for everything since the mark, less the overlap: page by page, whatever it
 *    gives at most, and only when it has begun to pass on what is new, so that nothing falls between the two. All of that
 *    is brought in oldest first; meanwhile what comes live is not read.
 * 2. The mark moves when all of that is in the log, and then with each event. What is asked for twice is known by its id.
 * 3. A process that cannot claim the relay any more lets go of the connection; what it was at, it does to the end: the
 *    same event by two processes is one event. One that is closed leaves the rest of its claim to another.
 */
export function subscribe(parts: SubscriptionParts): Subscription {
  const { link, mark, keyValue, clock, agents, settings, startedAt } = parts;
  const task = `nostr/relay/${hashOfUrl(link.url)}`;
  const closing = new AbortController();
  const { signal } = closing;
  /** Until when the relay is ours, ms. */
  let heldUntil = 0;
  const intake = new Intake({ ...parts, mark, signal, handled });
  const caughtUp = Promise.withResolvers<void>();
  caughtUp.promise.catch(() => {});
  let askedAt = startedAt;
  let isSettled = false;
  let newest = 0;
  let stop: (() => void) | null = null;
  let savedAt = clock.monotonic();
  let lookedAt = savedAt;
  /** Of the present connection; what belongs to an earlier one has no more to say. */
  let round = 0;
  let backlog = new Backlog();

  function filter(): Filter {
    return { kinds: settings.kinds, '#p': [...agents.keys()], since: sinceOf(mark, startedAt, settings) };
  }

  function handled(event: SignedEvent): void {
    newest = Math.max(newest, event.created_at);
    if (!isSettled) return;
    mark.reach(event.created_at, seconds(clock.now()));
    if (clock.monotonic() - savedAt >= SAVE_MS) void save();
  }

  async function save(): Promise<void> {
    savedAt = clock.monotonic();
    await mark.save().catch((error: unknown) => parts.onWarning(error, 'nostr'));
  }

  function follow(): void {
    stop ??= link.follow(
      () => {
        round += 1;
        isSettled = false;
        askedAt = seconds(clock.now());
        backlog = new Backlog();
        return [{ ...filter(), limit: 1 }];
      },
      {
        event: (raw) => (backlog.isOver ? intake.take(raw) : backlog.add(raw)),
        caughtUp: () => catchUp(round, backlog),
      },
    );
  }

  async function catchUp(present: number, waiting: Backlog): Promise<void> {
    const { since = 0 } = filter();
    const isCurrent = () => present === round && !signal.aborted;
    for (let isMore = true; isMore && isCurrent();) {
      try {
        const page = await link.query({ ...filter(), since, ...waiting.before() }, { limit: PAGE });
        const found = waiting.addPage(page, since);
        isMore = found.isMore;
        for (let n = found.strays; n > 0; n--) link.refuse('unasked');
      } catch (error) {
        if (link.status().state === 'isolated') return;
        parts.onWarning(toTroupeError(error), 'nostr');
        await clock.sleep(RETRY_MS, signal);
        continue;
      }
      if (waiting.isFull) for (const raw of waiting.take()) await intake.take(raw);
    }
    for (const raw of waiting.take()) if (isCurrent()) await intake.take(raw);
    if (!isCurrent()) return;
    waiting.isOver = true;
    isSettled = true;
    lookedAt = clock.monotonic();
    mark.reach(Math.max(askedAt, newest), seconds(clock.now()));
    void intake.idle().then(async () => {
      if (!isCurrent()) return;
      await save();
      caughtUp.resolve();
    });
  }

  async function lookAgain(): Promise<void> {
    lookedAt = clock.monotonic();
    const page = await link.query(filter(), { limit: PAGE }).catch(() => []);
    const found = new Backlog();
    found.addPage(page, filter().since ?? 0);
    for (const raw of found.take()) if (!signal.aborted) await intake.take(raw);
  }

  async function claim(): Promise<boolean> {
    const { owner, claimMs } = parts;
    const now = clock.now();
    const until = now + claimMs;
    const isClaimed = await keyValue.claim(task, { owner, now, until });
    heldUntil = isClaimed ? until : ((await takeLeft(keyValue, task, { owner, now })) ?? 0);
    return heldUntil > 0;
  }

  /** All that was dealt with is written down: another need not wait for the end of the claim. */
  async function leave(): Promise<void> {
    if (heldUntil <= clock.now()) return;
    await leavePeriod(keyValue, task, heldUntil).catch((error: unknown) => parts.onWarning(error, 'nostr'));
  }

  async function hold(): Promise<void> {
    while (!signal.aborted) {
      const isOurs = await claim().catch((error: unknown) => {
        if (toTroupeError(error).policy !== 'retry') parts.onWarning(error, 'nostr');
        // Not to know is no reason to stop: two that follow do no harm.
        return stop !== null;
      });
      if (isOurs && !stop) await mark.load().catch(() => null);
      if (signal.aborted) return;
      if (isOurs) follow();
      else letGo();
      if (isSettled && clock.monotonic() - lookedAt >= LOOK_MS) void lookAgain();
      // Who holds it asks again as soon as it is free, before the others.
      const pauseMs =
        isOurs && heldUntil > clock.now()
          ? heldUntil - clock.now() + 1
          : parts.claimMs * (0.25 + parts.random() / 4);
      await clock.sleep(Math.max(1, pauseMs), signal);
    }
  }

  function letGo(): void {
    round += 1;
    isSettled = false;
    stop?.();
    stop = null;
  }

  const held = hold();
  return {
    status: () => ({
      state: stop === null ? 'waiting' : isSettled ? 'live' : 'catching up',
      mark: mark.value,
    }),
    caughtUp: () => caughtUp.promise,
    async close() {
      closing.abort();
      letGo();
      caughtUp.reject(new TroupeError('shutting_down', 'the relay is not followed any more'));
      await held;
      await intake.idle();
      await save();
      await leave();
    },
  };
}

/** Seconds: from when on a relay is asked. */
export function sinceOf(
  mark: Pick<HighWater, 'value'>,
  startedAt: number,
  { overlapMs }: Pick<NostrSettings, 'overlapMs'>,
): number {
  return Math.max(0, (mark.value ?? startedAt) - Math.ceil(overlapMs / 1_000));
}

function seconds(ms: number): number {
  return Math.floor(ms / 1_000);
}

const MAX_SIZE = 2_000;
const MAX_CHARS = 16_777_216;

/**
 * What a relay had before we asked, newest first as relays give it, until it is brought in oldest first. Nothing of it is
 * verified: an id or a time that is not true changes the order, and what is asked for next, and no more.
 */
class Backlog {
  /** Everything after it is live. */
  isOver = false;
  #waiting: { raw: unknown; at: number }[] = [];
  readonly #ids = new Set<string>();
  #chars = 0;
  #isBarren = false;
  #oldest = Infinity;

  /** What is to be asked for next: the newest, then what is as old as the oldest that was found. */
  before(): { until?: number } {
    return this.#oldest === Infinity ? {} : { until: this.#oldest };
  }

  /** No more should wait. */
  get isFull(): boolean {
    return this.#waiting.length >= MAX_SIZE || this.#chars >= MAX_CHARS;
  }

  add(raw: unknown): void {
    this.#add(raw);
  }

  /** A page of what is older; whether there may be more, and how many of it are of another time than was asked for. */
  addPage(page: readonly unknown[], since: number): { isMore: boolean; strays: number } {
    const until = this.#oldest;
    const inside = page.filter((raw) => {
      const at = timeOf(raw);
      return at === null || (at >= since && at <= until);
    });
    const added = inside.filter((raw) => this.#add(raw)).length;
    for (const raw of inside) this.#oldest = Math.min(this.#oldest, timeOf(raw) ?? Infinity);
    const wasBarren = this.#isBarren;
    this.#isBarren = added === 0;
    // A page of one second that is known: what that second has beyond it cannot be asked for. So on with the one before.
    if (this.#isBarren) this.#oldest -= 1;
    const isMore = added > 0 || (page.length > 1 && !wasBarren);
    return { isMore: isMore && this.#oldest >= since, strays: page.length - inside.length };
  }

  /** All that waits, oldest first. */
  take(): unknown[] {
    const taken = this.#waiting.toSorted((a, b) => a.at - b.at);
    this.#waiting = [];
    this.#chars = 0;
    return taken.map(({ raw }) => raw);
  }

  #add(raw: unknown): boolean {
    const { id, content } = (raw ?? {}) as Record<string, unknown>;
    if (typeof id === 'string') {
      if (this.#ids.has(id)) return false;
      this.#ids.add(id.slice(0, 64));
    }
    this.#chars += typeof content === 'string' ? content.length : 0;
    this.#waiting.push({ raw, at: timeOf(raw) ?? 0 });
    return typeof id === 'string';
  }
}

function timeOf(raw: unknown): number | null {
  const at = (raw as { created_at?: unknown } | null)?.created_at;
  return typeof at === 'number' && Number.isSafeInteger(at) ? at : null;
}
