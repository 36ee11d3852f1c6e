import type { Clock } from '../../clock.ts';
import { MAX_TIMED_PARTS, TimedPart, type TurnTimes } from '../../events/index.ts';
import type { TurnPart } from '../../metrics.ts';

/** Collects the parts of a turn in the order of their ends. All given times are monotonic. */
export interface TimedParts {
  add(part: TimedPart, start: number, end: number): void;
  /** From here on a model call waits for what it needs, until `asked`. */
  waits(start: number): void;
  asked(at: number): void;
  all(): TurnTimes | null;
}

const TIMED: ReadonlySet<string> = new Set(TimedPart.options);

export function isTimed(part: TurnPart): part is TimedPart {
  return TIMED.has(part);
}

export function timeParts(clock: Pick<Clock, 'now' | 'monotonic'>): TimedParts {
  const began = clock.monotonic();
  const from = Math.round(clock.now());
  const parts: TurnTimes['parts'] = [];
  let waiting: number | null = null;

  function add(part: TimedPart, start: number, end: number): void {
    const ms = Math.round(end - start);
    if (ms > 0 && parts.length < MAX_TIMED_PARTS)
      parts.push([part, Math.max(0, Math.round(start - began)), ms]);
  }
  return {
    add,
    waits: (start) => void (waiting = start),
    asked(at) {
      if (waiting !== null) add('admission', waiting, at);
      waiting = null;
    },
    all: () => (parts.length === 0 ? null : { from, parts: [...parts] }),
  };
}
