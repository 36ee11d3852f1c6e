import {
  type FollowParts,
  leavePeriod,
  type NostrStatus,
  takeLeft,
  toTroupeError,
  TroupeError,
} from './troupe.ts';
import { hashOfUrl, type HighWater } from './high-water.ts';
import { Intake, type IntakeParts } from './intake.ts';
import type { Filter, SignedEvent } from './nostr-event.ts';
import type { RelayLink, RelayStatus } from './relay-link.ts';
import type { NostrSettings } from './settings.ts';

type Handled = Omit<IntakeParts, 'link' | 'mark' | 'handled' | 'signal' | 'settings'>;

interface RelayReaderParts extends Handled, Omit<FollowParts, 'troupe'> {
  link: RelayLink;
  /** Already loaded. */
  mark: HighWater;
  /** Time of the relay's first setup, seconds. Without a mark, older events are not requested. */
  startedAt: number;
  settings: IntakeParts['settings'] & Pick<NostrSettings, 'overlapMs'>;
  /** Length of a claim, ms: one process reads the relay for this long. */
  claimMs: number;
}

/** Number of events requested at a time. */
const PAGE = 200;
/** Interval of queries for the newest events besides the live subscription, ms: a relay may fail to pass an event on. */
const LOOK_MS = 60_000;
const SAVE_MS = 5_000;
const RETRY_MS = 5_000;

/**
 * Reads one relay, in one process at a time, from the mark on.
 * 1. After each connection the relay is asked for everything since the mark, less the overlap, page by page. The queries
 *    start after the live subscription, so that no event is missed in between. The found events are taken oldest first;
 *    live events are not read meanwhile.
 * 2. The mark moves when all of them are in the log, and then with each event. Repeated events are recognised by id.
 * 3. A process that loses its claim disconnects. It finishes the events under way, because an event taken by two processes
 *    is stored once. A process that closes leaves the rest of its claim to another process.
 */
export class RelayReader {
  readonly #parts: RelayReaderParts;
  readonly #task: string;
  readonly #closing = new AbortController();
  readonly #intake: Intake;
  readonly #caughtUp = Promise.withResolvers<void>();
  readonly #held: Promise<void>;
  /** End of our claim, ms. */
  #heldUntil = 0;
  #stop: (() => void) | null = null;
  /** Number of the current connection. Work for an earlier one is abandoned. */
  #round = 0;
  #backlog = new Backlog();
  #isSettled = false;
  /** Start of the current connection, seconds. */
  #askedAt = 0;
  /** Time of the newest handled event, seconds. */
  #newest = 0;
  #savedAt: number;
  #lookedAt: number;

  constructor(parts: RelayReaderParts) {
    this.#parts = parts;
    this.#task = `nostr/relay/${hashOfUrl(parts.link.url)}`;
    const handled = (event: SignedEvent) => this.#handled(event);
    this.#intake = new Intake({ ...parts, signal: this.#closing.signal, handled });
    this.#caughtUp.promise.catch(() => {});
    this.#savedAt = this.#lookedAt = parts.clock.monotonic();
    this.#held = this.#hold();
  }

  /** `waiting`: another process reads the relay. */
  status(): RelayStatus & { inbound: NonNullable<NostrStatus['relays'][number]['inbound']> } {
    const { link, mark } = this.#parts;
    const state = this.#stop === null ? 'waiting' : this.#isSettled ? 'live' : 'catching up';
    return { ...link.status(), inbound: { state, mark: mark.value } };
  }

  /** Resolves when everything the relay had is in the log. */
  caughtUp(): Promise<void> {
    return this.#caughtUp.promise;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#letGo();
    this.#caughtUp.reject(new TroupeError('shutting_down', 'the relay is no longer followed'));
    await this.#held;
    await this.#intake.idle();
    await this.#save();
    await this.#leave();
  }

  #filter(): Filter & { since: number } {
    const { settings, agents, mark, startedAt } = this.#parts;
    return { kinds: settings.kinds, '#p': [...agents.keys()], since: sinceOf(mark, startedAt, settings) };
  }

  #handled({ created_at }: SignedEvent): void {
    const { mark, clock } = this.#parts;
    this.#newest = Math.max(this.#newest, created_at);
    if (!this.#isSettled) return;
    mark.reach(created_at, seconds(clock.now()));
    if (clock.monotonic() - this.#savedAt >= SAVE_MS) void this.#save();
  }

  async #save(): Promise<void> {
    this.#savedAt = this.#parts.clock.monotonic();
    await this.#parts.mark.save().catch(this.#warn);
  }

  readonly #warn = (error: unknown): void => this.#parts.onWarning(error, 'nostr');

  #follow(): void {
    this.#stop ??= this.#parts.link.follow(
      () => {
        this.#round += 1;
        this.#isSettled = false;
        this.#askedAt = seconds(this.#parts.clock.now());
        this.#backlog = new Backlog();
        return [{ ...this.#filter(), limit: 1 }];
      },
      {
        event: (raw) => (this.#backlog.isOver ? this.#intake.take(raw) : void this.#backlog.add(raw)),
        caughtUp: () => this.#catchUp(this.#round, this.#backlog),
      },
    );
  }

  async #catchUp(round: number, backlog: Backlog): Promise<void> {
    const { link, clock, mark } = this.#parts;
    const { signal } = this.#closing;
    const { since } = this.#filter();
    const isCurrent = () => round === this.#round && !signal.aborted;
    for (let isMore = true; isMore && isCurrent();) {
      try {
        const page = await link.query({ ...this.#filter(), since, ...backlog.before() }, { limit: PAGE });
        const found = backlog.addPage(page, since);
        isMore = found.isMore;
        for (let n = found.outside; n > 0; n--) link.refuse('unasked');
      } catch (error) {
        if (link.status().state === 'isolated') return;
        this.#warn(toTroupeError(error));
        await clock.sleep(RETRY_MS, signal);
        continue;
      }
      if (backlog.isFull) for (const raw of backlog.take()) await this.#intake.take(raw);
    }
    for (const raw of backlog.take()) if (isCurrent()) await this.#intake.take(raw);
    if (!isCurrent()) return;
    backlog.isOver = true;
    this.#isSettled = true;
    this.#lookedAt = clock.monotonic();
    mark.reach(Math.max(this.#askedAt, this.#newest), seconds(clock.now()));
    void this.#intake.idle().then(async () => {
      if (!isCurrent()) return;
      await this.#save();
      this.#caughtUp.resolve();
    });
  }

  async #lookAgain(): Promise<void> {
    this.#lookedAt = this.#parts.clock.monotonic();
    const page = await this.#parts.link.query(this.#filter(), { limit: PAGE }).catch(() => []);
    const found = new Backlog();
    found.addPage(page, this.#filter().since);
    for (const raw of found.take()) if (!this.#closing.signal.aborted) await this.#intake.take(raw);
  }

  async #claim(): Promise<boolean> {
    const { keyValue, clock, owner, claimMs } = this.#parts;
    const now = clock.now();
    const until = now + claimMs;
    const isClaimed = await keyValue.claim(this.#task, { owner, now, until });
    this.#heldUntil = isClaimed ? until : ((await takeLeft(keyValue, this.#task, { owner, now })) ?? 0);
    return this.#heldUntil > 0;
  }

  /** Leaves the rest of the claim to another process. Everything that was handled must be saved first. */
  async #leave(): Promise<void> {
    const { keyValue, clock } = this.#parts;
    if (this.#heldUntil > clock.now()) {
      await leavePeriod(keyValue, this.#task, this.#heldUntil).catch(this.#warn);
    }
  }

  async #hold(): Promise<void> {
    const { clock, mark, claimMs, random } = this.#parts;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const isOurs = await this.#claim().catch((error: unknown) => {
        if (toTroupeError(error).policy !== 'retry') this.#warn(error);
        // If the store does not answer, a reader continues, because two readers do no harm.
        return this.#stop !== null;
      });
      if (isOurs && !this.#stop) await mark.load().catch(() => null);
      if (signal.aborted) return;
      if (isOurs) this.#follow();
      else this.#letGo();
      if (this.#isSettled && clock.monotonic() - this.#lookedAt >= LOOK_MS) void this.#lookAgain();
      // The holder claims again as soon as its claim ends, before the others do.
      const leftMs = isOurs ? this.#heldUntil - clock.now() : 0;
      await clock.sleep(Math.max(1, leftMs > 0 ? leftMs + 1 : claimMs * (0.25 + random() / 4)), signal);
    }
  }

  #letGo(): void {
    this.#round += 1;
    this.#isSettled = false;
    this.#stop?.();
    this.#stop = null;
  }
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
 * The stored events of a relay: requested newest first, taken oldest first. They are not verified yet: a false id or time only
 * changes the order and the next request.
 */
class Backlog {
  /** Whether further events are live. */
  isOver = false;
  #waiting: { raw: unknown; at: number }[] = [];
  readonly #ids = new Set<string>();
  #chars = 0;
  #wasEmpty = false;
  #oldest = Infinity;

  /** Bound of the next request: none at first, then the time of the oldest event so far. */
  before(): { until?: number } {
    return this.#oldest === Infinity ? {} : { until: this.#oldest };
  }

  /** Whether the waiting events should be taken before more are requested. */
  get isFull(): boolean {
    return this.#waiting.length >= MAX_SIZE || this.#chars >= MAX_CHARS;
  }

  /** Whether the event is new and has an id. */
  add(raw: unknown): boolean {
    const { id, content } = (raw ?? {}) as Record<string, unknown>;
    if (typeof id === 'string') {
      if (this.#ids.has(id)) return false;
      this.#ids.add(id.slice(0, 64));
    }
    this.#chars += typeof content === 'string' ? content.length : 0;
    this.#waiting.push({ raw, at: timeOf(raw) ?? 0 });
    return typeof id === 'string';
  }

  /** Returns whether there may be more events, and the number of events outside the requested time. */
  addPage(page: readonly unknown[], since: number): { isMore: boolean; outside: number } {
    const until = this.#oldest;
    const inside = page.filter((raw) => {
      const at = timeOf(raw);
      return at === null || (at >= since && at <= until);
    });
    const added = inside.filter((raw) => this.add(raw)).length;
    for (const raw of inside) this.#oldest = Math.min(this.#oldest, timeOf(raw) ?? Infinity);
    const wereEmpty = this.#wasEmpty;
    this.#wasEmpty = added === 0;
    // Without new events, the rest of this second cannot be reached, so the second before it is next.
    if (this.#wasEmpty) this.#oldest -= 1;
    const isMore = added > 0 || (page.length > 1 && !wereEmpty);
    return { isMore: isMore && this.#oldest >= since, outside: page.length - inside.length };
  }

  /** Removes and returns the waiting events, oldest first. */
  take(): unknown[] {
    const taken = this.#waiting.toSorted((a, b) => a.at - b.at);
    this.#waiting = [];
    this.#chars = 0;
    return taken.map(({ raw }) => raw);
  }
}

function timeOf(raw: unknown): number | null {
  const at = (raw as { created_at?: unknown } | null)?.created_at;
  return typeof at === 'number' && Number.isSafeInteger(at) ? at : null;
}
