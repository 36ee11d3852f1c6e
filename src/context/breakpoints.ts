/**
 * Where a provider with explicit caching is told to cache: after the system message, before this turn's input (the
 * frontier that the last request wrote) and at the end. Providers look back at most 20 blocks from a breakpoint, so
 * the middle one keeps long turns within reach.
 */
export function breakpointsOf(count: number, turnBegins: number | null): number[] {
  if (count === 0) return [];
  const last = count - 1;
  // `turnBegins` counts the view's messages; the system message stands before them.
  const frontier = turnBegins === null ? 0 : turnBegins;
  return [...new Set([0, frontier, last])].toSorted((a, b) => a - b);
}
