import type { GraphEdge } from './graph.ts';
import type { Route } from './route.ts';

/** Address of the newest message of an edge, or of the thread of its newest task. */
export function latestOf({ seq, thread }: GraphEdge): Partial<Route> {
  if (seq === 0 && thread !== null) return { conversation: thread };
  return { event: seq, turn: null, list: 'talk' };
}
