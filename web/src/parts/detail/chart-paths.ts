import type { Transitions } from '../../../../src/library/projection/chart.ts';

interface Point {
  x: number;
  y: number;
}

const ROUND = 6;

/** A polyline with rounded corners. */
export function chartPaths(points: readonly Point[]): string {
  const [first, ...rest] = points;
  if (!first) return '';
  const parts = [`M${first.x} ${first.y}`];
  let from = first;
  for (const [index, corner] of rest.entries()) {
    const to = rest[index + 1];
    if (!to) {
      parts.push(`L${corner.x} ${corner.y}`);
      break;
    }
    const before = towards(corner, from);
    const after = towards(corner, to);
    parts.push(`L${before.x} ${before.y}Q${corner.x} ${corner.y} ${after.x} ${after.y}`);
    from = corner;
  }
  return parts.join('');
}

/** A point between `corner` and `to`, at most halfway. */
function towards(corner: Point, to: Point): Point {
  const length = Math.hypot(to.x - corner.x, to.y - corner.y);
  if (length === 0) return corner;
  const share = Math.min(ROUND, length / 2) / length;
  return { x: corner.x + (to.x - corner.x) * share, y: corner.y + (to.y - corner.y) * share };
}

/** `working.streaming` is within `working`. */
export function isWithin(state: string, path: string): boolean {
  return state === path || state.startsWith(`${path}.`);
}

/** The edge that led to the current state, as far as its event identifies it. */
export function lastEdge<E extends Transitions['edges'][number]>(
  edges: readonly E[],
  { state, event }: { state: string; event: string | null },
): E | null {
  if (event === null) return null;
  const led = edges.filter((edge) => edge.event === event && isWithin(state, edge.to));
  return led.length === 1 ? (led[0] ?? null) : (led.find(({ to }) => to === state) ?? led[0] ?? null);
}
