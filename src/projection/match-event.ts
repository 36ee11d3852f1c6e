import type { Event } from '../events/index.ts';
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
  return query === undefined || findWords(event, query.toLowerCase()) !== null;
}

function turnAsked(event: Event): string | undefined {
  return event.kind === 'command' ? event.body.turn : undefined;
}

const EXCERPT = 160;

/** The text around the first match; null if there is none. */
export function excerptOf(event: Event, query: string): string | null {
  const found = findWords(event, query.toLowerCase());
  if (!found) return null;
  const { text, at } = found;
  const spare = Math.max(0, EXCERPT - query.length);
  const from = Math.max(0, Math.min(at - (spare >> 1), text.length - EXCERPT));
  const part = text
    .slice(from, from + EXCERPT)
    .toWellFormed()
    .replace(/\s+/g, ' ')
    .trim();
  return `${from > 0 ? '…' : ''}${part}${from + EXCERPT < text.length ? '…' : ''}`;
}

/** Depth to which bodies are searched. Deeper values are data that no list shows. */
const MAX_DEPTH = 8;

function findWords(event: Event, lower: string): { text: string; at: number } | null {
  const { author, body } = event as { author?: { name?: unknown }; body?: unknown };
  return search(body, lower, 0) ?? search(author?.name, lower, 0);
}

function search(value: unknown, lower: string, depth: number): { text: string; at: number } | null {
  if (typeof value === 'string') {
    const at = value.toLowerCase().indexOf(lower);
    return at < 0 ? null : { text: value, at };
  }
  if (typeof value !== 'object' || value === null || depth >= MAX_DEPTH) return null;
  for (const each of Object.values(value)) {
    const found = search(each, lower, depth + 1);
    if (found) return found;
  }
  return null;
}
