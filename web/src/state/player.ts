/** Speeds of a replay: multiples of the usual pace, or the pace at which the events came. */
export const SPEEDS = ['1', '4', '16', 'real'] as const;
export type Speed = (typeof SPEEDS)[number];

/** Times of consecutive events, ms since the epoch, from the seq `first` on. */
export interface EventTimes {
  first: number;
  at: readonly number[];
}

export interface PlayerDeps {
  clock: { setTimeout(run: () => void, ms: number): unknown; clearTimeout(handle: unknown): void };
  /** Seq of the last event shown. */
  at(): number;
  goTo(seq: number): void;
  /** Whether the requested moment is on the screen. */
  isShown(): boolean;
  /** The times of an event and of those after it. */
  timesFrom(seq: number): Promise<EventTimes>;
  /** Called with the length of a silence that is shortened, ms, and with null when it is over. */
  silence(ms: number | null): void;
}

export interface Player {
  /** Plays on from the moment shown. A running replay changes its speed. */
  play(speed: Speed): void;
  stop(): void;
}

/** Time between two events, ms. */
const STEP_MS = 350;
/**
 * Least time between two steps, ms: events that follow faster form one step, because browsers limit how often the address may
 * change.
 */
const MIN_MS = 120;
/** Longest time that a silence takes in a replay, ms. */
export const MAX_SILENCE_MS = 2_000;

/** Steps through a log. Each step waits until the previous one is on the screen. */
export function createPlayer(deps: PlayerDeps): Player {
  const { clock } = deps;
  let run = 0;
  let timer: unknown;
  let times: EventTimes | null = null;

  function stop(): void {
    run += 1;
    clock.clearTimeout(timer);
    times = null;
    deps.silence(null);
  }

  async function next(mine: number, speed: Speed): Promise<void> {
    const at = deps.at();
    if (speed === 'real' && !hasNext(times, at)) {
      // Without times, the pace is even.
      times = await deps.timesFrom(at).catch(() => null);
      if (mine !== run) return;
    }
    const step = stepFrom(at, speed, times);
    deps.silence(step.silence);
    timer = clock.setTimeout(() => arrive(mine, speed, { at, to: step.to }), step.wait);
  }

  function arrive(mine: number, speed: Speed, step: { at: number; to: number }): void {
    if (!deps.isShown()) {
      timer = clock.setTimeout(() => arrive(mine, speed, step), MIN_MS);
      return;
    }
    // The user may have moved the scrubber in the meantime.
    if (deps.at() === step.at) deps.goTo(step.to);
    if (mine === run) void next(mine, speed);
  }

  return {
    play(speed) {
      stop();
      void next(run, speed);
    },
    stop,
  };
}

function hasNext(times: EventTimes | null, at: number): boolean {
  return times !== null && at >= times.first && at + 1 < times.first + times.at.length;
}

interface Step {
  to: number;
  wait: number;
  silence: number | null;
}

export function stepFrom(at: number, speed: Speed, times: EventTimes | null): Step {
  if (speed !== 'real' || times === null || !hasNext(times, at)) {
    const each = STEP_MS / (speed === 'real' ? 1 : Number(speed));
    const events = Math.ceil(MIN_MS / each);
    return { to: at + events, wait: events * each, silence: null };
  }
  const since = (seq: number) =>
    (times.at[seq - times.first] ?? Infinity) - (times.at[at - times.first] ?? 0);
  let to = at + 1;
  while (since(to + 1) <= MIN_MS) to += 1;
  const gap = since(to);
  return {
    to,
    wait: Math.min(MAX_SILENCE_MS, Math.max(MIN_MS, gap)),
    silence: gap > MAX_SILENCE_MS ? gap : null,
  };
}
