import type { Event } from '../../events/index.ts';
import type { Row } from './model.ts';

/** Conditions on rows, all of which must hold. */
export interface RowFilter {
  agents?: readonly string[] | undefined;
  kinds?: readonly string[] | undefined;
  not?: readonly string[] | undefined;
  level?: Row['level'] | undefined;
  turn?: string | undefined;
  /** Text anywhere in the event, in any letter case. */
  query?: string | undefined;
}

/** Whether an event matches the filter. An agent matches the rows by it, about it and to it. */
export function matchesRow(row: Row, event: Event, filter: RowFilter): boolean {
  const { agents, kinds, not, level, turn, query } = filter;
  if (kinds && !kinds.includes(row.kind)) return false;
  if (not?.includes(row.kind)) return false;
  if (level !== undefined && row.level !== level) return false;
  if (turn !== undefined && row.turn !== turn && turnAsked(event) !== turn) return false;
  if (agents && !agents.some((agent) => row.agent === agent || row.to.some((to) => to === agent)))
    return false;
  return query === undefined || hasText(event, query.toLowerCase());
}

function turnAsked(event: Event): string | undefined {
  return event.kind === 'command' ? event.body.turn : undefined;
}

/** Depth to which bodies are searched. Deeper values are data that no list shows. */
const MAX_DEPTH = 8;

function hasText(event: Event, lower: string): boolean {
  const { author, body } = event as { author?: { name?: unknown }; body?: unknown };
  return isIn(body, lower, 0) || isIn(author?.name, lower, 0);
}

function isIn(value: unknown, lower: string, depth: number): boolean {
  if (typeof value === 'string') return value.toLowerCase().includes(lower);
  if (typeof value !== 'object' || value === null || depth >= MAX_DEPTH) return false;
  return Object.values(value).some((each) => isIn(each, lower, depth + 1));
}
