import type { Random } from './random.ts';

/** A fault at an operation (the first four) or between two operations. */
export type FaultKind =
  | 'crash before'
  | 'crash after'
  | 'ambiguous ack'
  | 'failed before'
  | 'stall duplicate'
  | 'queue loss'
  | 'next job loss'
  | 'pause'
  | 'checkpoint damage'
  | 'clock jump';

export interface Fault {
  /** Number of the operation. */
  at: number;
  kind: FaultKind;
  /** 0 <= n < 1: duration, distance or choice. */
  size: number;
  /** Description of where it struck, for people. */
  place?: string;
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
  ['checkpoint damage', 0.01],
];

/** No fault that requires a sweeper: the recovery must not depend on it. */
const LIGHT: Rates = [
  ['crash before', 0.002],
  ['crash after', 0.002],
  ['stall duplicate', 0.012],
  ['next job loss', 0.05],
  ['pause', 0.006],
  ['checkpoint damage', 0.004],
];

/** Per operation, in schedules with clock jumps; `JUMPING` is their share of full schedules. */
const JUMP_RATE = 0.002;
export const JUMPING = 0.02;

export interface FaultPlan {
  /** The fault of the next operation, or null. */
  next(): Fault | null;
  /** The faults that have struck, in order. */
  readonly struck: Fault[];
  stop(): void;
}

/** Random faults, or with `replay` exactly these. */
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
