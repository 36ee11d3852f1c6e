import { type AttendedTroupe, type Clock, systemClock } from './troupe.ts';

/** The clock of a troupe under test. */
export interface TestClock extends Clock {
  /**
   * Moves the time on by `ms`, and resolves when every troupe with this clock rests. Waiting turns continue at their
   * times; deadlines, reminders and schedules come at theirs. Other work that depends on time is looked for 24
   * times meanwhile, but at most once a minute.
   */
  pass(ms: number): Promise<void>;
  /** Ms until the next waiting turn continues, such as one that will repeat a failed call. Null: none waits. */
  untilNext(): number | null;
}

/** Settings of `createTestClock`. */
export interface TestClockOptions {
  /**
   * Start of its time, ms since the epoch. Default: 5 January 2026, 9:00 UTC, so that prompts with times are the same
   * in every run.
   */
  startsAt?: number | undefined;
  /** False: the system's time is added, which models that take real time need. Default true. */
  stands?: boolean | undefined;
}

const START_MS = Date.UTC(2026, 0, 5, 9);
const MOST_LOOKS = 24;
const LEAST_LOOK_MS = 60_000;

/** Shorter limits belong to polling, which should not move the time of the conversation. */
const LEAST_LIMIT_MS = 50;

/** An abort without a reason would create an error with a stack. */
const OVER = 'the sleep is over';

interface Sleeper {
  due: number;
  purpose: Parameters<Clock['sleep']>[2];
  wake: () => void;
}

/**
 * A clock for `createTroupe`. Its time moves only by `pass`, so that a log does not depend on the speed of the machine,
 * and `troupe.idle()` resolves while turns wait for the time. Time limits of running work, such as a tool's, are real;
 * when one expires, the clock moves on by it.
 *
 *     const clock = createTestClock();
 *     await using troupe = await createTroupe(company, { clock });
 *     await clock.pass(3 * 24 * 3_600_000);
 */
export function createTestClock(options: TestClockOptions = {}, system: Clock = systemClock): TestClock {
  return new MovedClock(options, system);
}

class MovedClock implements TestClock {
  readonly #system: Clock;
  readonly #startsAt: number;
  readonly #stands: boolean;
  readonly #begun: number;
  readonly #sleepers = new Set<Sleeper>();
  readonly #attended = new Set<AttendedTroupe>();
  #passed = 0;
  #changed = Promise.withResolvers<void>();
  readonly moved: NonNullable<Clock['moved']>;

  constructor({ startsAt = START_MS, stands = true }: TestClockOptions, system: Clock) {
    this.#system = system;
    this.#startsAt = startsAt;
    this.#stands = stands;
    this.#begun = system.monotonic();
    this.moved = {
      pauses: () => (stands ? this.#sleepersFor('pause').length : 0),
      attend: (troupe) => {
        this.#attended.add(troupe);
        return () => {
          this.#attended.delete(troupe);
          this.#tellChange();
        };
      },
    };
  }

  now(): number {
    return Math.floor(this.#startsAt + this.monotonic());
  }

  monotonic(): number {
    return this.#passed + (this.#stands ? 0 : this.#system.monotonic() - this.#begun);
  }

  sleep(ms: number, signal?: AbortSignal, purpose?: Sleeper['purpose']): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    if (ms <= 0) return this.#system.sleep(ms, signal);
    if (purpose === undefined) return this.#limit(ms, signal);
    return new Promise((resolve) => {
      const over = this.#isReal(purpose) ? new AbortController() : null;
      const sleeper: Sleeper = { due: this.monotonic() + ms, purpose, wake: () => wake() };
      const wake = () => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener('abort', wake);
        over?.abort(OVER);
        resolve();
      };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', wake, { once: true });
      if (over) void this.#system.sleep(ms, over.signal).then(wake);
      this.#tellChange();
    });
  }

  untilNext(): number | null {
    const left = this.#sleepersFor('pause').map(({ due }) => due - this.monotonic());
    return left.length === 0 ? null : Math.max(0, Math.min(...left));
  }

  async pass(ms: number): Promise<void> {
    await this.#rested();
    const end = this.monotonic() + ms;
    const lookMs = Math.max(LEAST_LOOK_MS, ms / MOST_LOOKS);
    do {
      const next = this.monotonic() + Math.min(lookMs, this.untilNext() ?? Infinity);
      const stop = await this.#firstDue(Math.min(end, next));
      this.#passed += Math.max(0, stop - this.monotonic());
      const now = this.monotonic();
      const due = [...this.#sleepers].filter((each) => each.purpose === 'look' || each.due <= now);
      for (const { wake } of due.toSorted((a, b) => a.due - b.due)) wake();
      await this.#rested();
    } while (this.monotonic() < end);
  }

  /** The first time, at most `far`, at which a troupe has something to do; if there is none, `far`. */
  async #firstDue(far: number): Promise<number> {
    const dueBy = async (at: number) => {
      let sum = 0;
      for (const troupe of this.#attended) if (troupe.looks) sum += await troupe.dueBy(this.#startsAt + at);
      return sum;
    };
    let low = this.monotonic();
    const atFar = await dueBy(far);
    const before = atFar === 0 ? 0 : await dueBy(low);
    if (atFar <= before) return far;
    let high = far;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (middle <= low || (await dueBy(middle)) > before) high = Math.max(middle, low + 1);
      else low = middle;
    }
    return high;
  }

  #sleepersFor(purpose: Sleeper['purpose']): Sleeper[] {
    return [...this.#sleepers].filter((each) => each.purpose === purpose);
  }

  #isReal(purpose: Sleeper['purpose']): boolean {
    return purpose === 'upkeep' || (purpose === 'pause' && !this.#stands);
  }

  /** A time limit of work that really runs. */
  async #limit(ms: number, signal?: AbortSignal): Promise<void> {
    const until = this.monotonic() + ms;
    await this.#system.sleep(ms, signal);
    if (this.#stands && ms >= LEAST_LIMIT_MS && !signal?.aborted)
      this.#passed = Math.max(this.#passed, until);
  }

  #tellChange(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Resolves when the search for due work sleeps in each troupe that has one, and all troupes rest. */
  async #rested(): Promise<void> {
    const looking = () => [...this.#attended].filter(({ looks }) => looks).length;
    while (this.#sleepersFor('look').length < looking()) await this.#changed.promise;
    for (const troupe of this.#attended) await troupe.rest();
  }
}
