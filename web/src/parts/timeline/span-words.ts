import { clock, duration } from '../../shared/format.ts';
import type { Scale } from '../../state/timeline/scale.ts';
import { dateOf } from '../../state/timeline/ticks.ts';

/** The period in view, such as: Tue, 3 Nov 12:01:09 – 12:03:00, 1 m 51 s. */
export function span({ scale, left, width }: { scale: Scale; left: number; width: number }): string {
  const from = scale.timeAt(left);
  const to = scale.timeAt(left + width);
  const [day, last] = [dateOf(from), dateOf(to)];
  const length = duration(to - from);
  return `${day} ${clock(from)} – ${last === day ? '' : `${last} `}${clock(to)}, ${length}`;
}
