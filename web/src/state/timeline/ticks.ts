import type { Scale } from './scale.ts';

/** A line of the time axis, in local time. */
export interface Tick {
  x: number;
  /** The time, as precise as the scale allows. */
  label: string;
  /** The date, where a day begins and at the first tick. */
  day: string | null;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MILLIS_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const STEPS: readonly number[] = [
  ...MILLIS_STEPS,
  ...[1, 2, 5, 10, 15, 30].map((each) => each * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((each) => each * MINUTE),
  ...[1, 2, 3, 6, 12].map((each) => each * HOUR),
  ...[1, 2, 7, 14, 28, 91, 364].map((each) => each * DAY),
];
/** Room for a label, px. */
const LABEL_PX = 84;
/** From a line to its label, px, and the most that a character of a label takes. */
const INDENT_PX = 4;
const CHAR_PX = 7;

const formatter = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat('en-GB', options);
const HOURS = formatter({ hour: '2-digit', minute: '2-digit' });
const SECONDS = formatter({ hour: '2-digit', minute: '2-digit', second: '2-digit' });
const MILLIS = formatter({
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
});
const DATE = formatter({ weekday: 'short', day: 'numeric', month: 'short' });
const DATE_OF_YEAR = formatter({ day: 'numeric', month: 'short', year: 'numeric' });

/** The ticks between two positions: at round times, and at the first moment after each gap. */
export function ticksOf(scale: Scale, from: number, to: number): Tick[] {
  const step = STEPS.find((each) => each >= LABEL_PX * scale.msPerPx) ?? (STEPS.at(-1) as number);
  const ticks: Tick[] = [];
  let free = Number.NEGATIVE_INFINITY;
  let day = '';
  const add = (time: number, x: number, until: number) => {
    if (x < free || x < from) return;
    const label = labelOf(time, step);
    const date = dateOf(time);
    const chars = date === day ? label.length : Math.max(label.length, date.length);
    // A gap or the edge would cut the words: the line stands alone.
    if (x + INDENT_PX + chars * CHAR_PX > until) return void ticks.push({ x, label: '', day: null });
    free = x + LABEL_PX;
    ticks.push({ x, label, day: date === day ? null : date });
    day = date;
  };
  const gaps = scale.gapsIn(from, to);
  let start = scale.timeAt(from);
  for (let index = 0; index <= gaps.length; index++) {
    const gap = gaps[index];
    const end = gap?.from ?? scale.timeAt(to);
    const until = gap?.x ?? to;
    for (let time = firstTick(start, step); time < end; time += step) add(time, scale.xOf(time), until);
    if (!gap) break;
    add(gap.to, scale.xOf(gap.to), gaps[index + 1]?.x ?? to);
    start = gap.to;
  }
  return ticks;
}

/** The first round time of the local day that is not before `time`. */
function firstTick(time: number, step: number): number {
  const offset = new Date(time).getTimezoneOffset() * MINUTE;
  return Math.ceil((time - offset) / step) * step + offset;
}

function labelOf(time: number, step: number): string {
  if (step < SECOND) return MILLIS.format(time);
  return (step < MINUTE ? SECONDS : HOURS).format(time);
}

/** Such as Tue, 3 Nov; in another year 3 Nov 2024. */
export function dateOf(time: number, now = Date.now()): string {
  const isThisYear = new Date(time).getFullYear() === new Date(now).getFullYear();
  return (isThisYear ? DATE : DATE_OF_YEAR).format(time);
}
