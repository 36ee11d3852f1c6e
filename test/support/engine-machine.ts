/** Finds every reachable snapshot of a machine by sending every event to each of them. */
export interface Play<S, E> {
  start: S;
  next: (snapshot: S, event: E) => S;
  alphabet: readonly E[];
  /** Bounds the search, since counters grow forever; snapshots outside are not visited. */
  within: (snapshot: S) => boolean;
}

export interface Visit<S, E> {
  snapshot: S;
  path: string;
  steps: { event: E; next: S }[];
}

/** Searches breadth first; snapshots with equal value and context are visited once. */
export function explore<S extends { value: unknown; context: unknown }, E>(play: Play<S, E>): Visit<S, E>[] {
  const found = new Map<string, Visit<S, E>>();
  const queue = [play.start];
  for (let snapshot = queue.shift(); snapshot; snapshot = queue.shift()) {
    const at = snapshot;
    const key = JSON.stringify([at.value, at.context]);
    if (found.has(key) || !play.within(at)) continue;
    const steps = play.alphabet.map((event) => ({ event, next: play.next(at, event) }));
    found.set(key, { snapshot: at, path: pathOf(at.value), steps });
    queue.push(...steps.map((step) => step.next));
  }
  return [...found.values()];
}

/** Writes `{working: 'streaming'}` as `working.streaming`. */
export function pathOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return Object.entries(value as Record<string, unknown>)
    .map(([parent, child]) => `${parent}.${pathOf(child)}`)
    .join(' ');
}
