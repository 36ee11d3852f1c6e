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
  /** Already loaded. */
  mark: HighWater;
  /** Time of the relay's first setup, seconds. Without a mark, older events are not requested. */
  startedAt: number;
  settings: IntakeParts['settings'] & Pick<NostrSettings, 'overlapMs'>;
  keyValue: KeyValue;
  owner: string;
  /** Length of a claim: one process reads the relay for this long. */
  claimMs: number;
  random: () => number;
  onWarning: (error: unknown, where: string) => void;
}

export interface Subscription {
  /** `waiting`: another process reads the relay. */
  status(): { state: 'waiting' | 'catching up' | 'live'; mark: number | null };
  /** Resolves when everything the relay had is in the log. */
  caughtUp(): Promise<void>;
  close(): Promise<void>;
}

/** Events requested at once. */
const PAGE = 200;
/** Interval of queries for the newest events, beside the subscription: a relay may fail to pass an event on. */
const LOOK_MS = 60_000;
const SAVE_MS = 5_000;
const RETRY_MS = 5_000;

/**
 * Follows one relay, in one process at a time, from the mark on.
 * 1. After each connection the relay is asked for everything since the mark, less the overlap, page by page. The queries
 *    start after the live subscription, so that no event falls between the two. The found events are taken oldest first;
 *    live events are not read meanwhile.
 * 2. The mark moves when all of them are in the log, and then with each event. Repeated events are recognised by id.
 * 3. A process that loses its claim disconnects. It finishes the events under way: an event taken by two processes is
 *    stored once. A process that closes leaves the rest of its claim to another.
 */
export function subscribe(parts: SubscriptionParts): Subscription {
  const { link, mark, keyValue, clock, agents, settings, startedAt } = parts;
  const task = `nostr/relay/${hashOfUrl(link.url)}`;
  const closing = new AbortController();
  const { signal } = closing;
  /** End of our claim, ms. */
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
  /** Number of the current connection. Work for an earlier one is abandoned. */
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

  /** Everything handled is saved by now: another process need not wait for the end of the claim. */
  async function leave(): Promise<void> {
    if (heldUntil <= clock.now()) return;
    await leavePeriod(keyValue, task, heldUntil).catch((error: unknown) => parts.onWarning(error, 'nostr'));
  }

  async function hold(): Promise<void> {
    while (!signal.aborted) {
      const isOurs = await claim().catch((error: unknown) => {
        if (toTroupeError(error).policy !== 'retry') parts.onWarning(error, 'nostr');
        // An unknown claim is no reason to stop: two readers do no harm.
        return stop !== null;
      });
      if (isOurs && !stop) await mark.load().catch(() => null);
      if (signal.aborted) return;
      if (isOurs) follow();
      else letGo();
      if (isSettled && clock.monotonic() - lookedAt >= LOOK_MS) void lookAgain();
      // The holder claims again as soon as its claim ends, before the others.
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
      caughtUp.reject(new TroupeError('shutting_down', 'the relay is no longer followed'));
      await held;
      await intake.idle();
      await save();
      await leave();
    },
  };
}

/** Events since this time are requested, seconds. */
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
 * The stored events of a relay: collected newest first, taken oldest first. They are not verified yet. A false id or time
 * only changes the order and the next request.
 */
class Backlog {
  /** Further events are live. */
  isOver = false;
  #waiting: { raw: unknown; at: number }[] = [];
  readonly #ids = new Set<string>();
  #chars = 0;
  #isBarren = false;
  #oldest = Infinity;

  /** Bound of the next request: none at first, then the time of the oldest event found. */
  before(): { until?: number } {
    return this.#oldest === Infinity ? {} : { until: this.#oldest };
  }

  /** True if the waiting events should be taken before more are requested. */
  get isFull(): boolean {
    return this.#waiting.length >= MAX_SIZE || this.#chars >= MAX_CHARS;
  }

  add(raw: unknown): void {
    this.#add(raw);
  }

  /** Adds a page. Returns whether there may be more, and the number of events outside the requested time. */
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
    // A page without new events: further events of this second cannot be requested, so the second before is next.
    if (this.#isBarren) this.#oldest -= 1;
    const isMore = added > 0 || (page.length > 1 && !wasBarren);
    return { isMore: isMore && this.#oldest >= since, strays: page.length - inside.length };
  }

  /** Removes and returns the waiting events, oldest first. */
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
