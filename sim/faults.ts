import type { Random } from './random.ts';

/** What may go wrong at an operation (the first four) or between two. */
export type FaultKind =
  | 'crash before'
  | 'crash after'
  | 'ambiguous ack'
  | 'failed before'
  | 'stall duplicate'
  | 'queue loss'
  | 'next job loss'
  | 'pause'
  | 'clock jump';

export interface Fault {
  /** Number of the operation. */
  at: number;
  kind: FaultKind;
  /** 0 <= n < 1: how long, how far, which. */
  size: number;
  /** For people: where it struck. */
  told?: string;
}

export type Mode = 'full' | 'light';
type Rates = readonly (readonly [FaultKind, number])[];

const FULL: Rates = [
  ['crash before', 0.012],
  ['crash after', 0.01],
  ['ambiguous ack', 0.02],
  ['failed before', 0.005],
  ['stall duplicate', 0.003],
  ['queue loss', 0.002],
  ['next job loss', 0.002],
  ['pause', 0.004],
];

/** Nothing that needs a sweeper: what is lost here must be found by the recipe alone. */
const LIGHT: Rates = [
  ['crash before', 0.002],
  ['crash after', 0.002],
  ['stall duplicate', 0.012],
  ['next job loss', 0.05],
  ['pause', 0.006],
];

/** In schedules with a clock that jumps, per operation; of full schedules, this share. */
const JUMP_RATE = 0.002;
export const JUMPING = 0.02;

export interface FaultPlan {
  /** The fault of the next operation, if there is one. */
  next(): Fault | null;
  /** What has struck, in order. */
  readonly struck: Fault[];
  stop(): void;
}

/** Faults by chance, or with `replay` exactly these. */
export function createFaultPlan(
  random: Random,
  { mode, jumps, replay }: { mode: Mode; jumps: boolean; replay?: readonly Fault[] | undefined },
): FaultPlan {
  const rates: Rates = [
    ...(mode === 'full' ? FULL : LIGHT),
    ...(jumps ? [['clock jump', JUMP_RATE] as const] : []),
  ];
  const total = rates.reduce((sum, [, rate]) => sum + rate, 0);
  const given = replay && new Map(replay.map((fault) => [fault.at, fault]));
  const struck: Fault[] = [];
  let at = 0;
  let stopped = false;

  function draw(): Fault | null {
    let dice = random();
    if (dice >= total) return null;
    for (const [kind, rate] of rates) {
      if (dice < rate) return { at, kind, size: random() };
      dice -= rate;
    }
    return null;
  }

  return {
    struck,
    next() {
      if (stopped) return null;
      at += 1;
      const fault = given ? (given.get(at) ?? null) : draw();
      if (fault) struck.push({ at: fault.at, kind: fault.kind, size: fault.size });
      return fault && (struck.at(-1) as Fault);
    },
    stop: () => void (stopped = true),
  };
}
