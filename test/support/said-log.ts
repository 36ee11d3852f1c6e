import type { AgentId, Author, Event, EventDraft } from '../../src/events/index.ts';
import { logged } from './log-player.ts';

const SAID_AT = Date.UTC(2026, 0, 1, 10, 0);
export const ana: Author = { kind: 'user', id: 'u1', name: 'Ana' };
export const ben: Author = { kind: 'user', id: 'u2', name: 'Ben' };
export const agent = (id: string): Author => ({ kind: 'agent', id, name: id });

/** `minutes` after ten o'clock. */
export type Said = [author: Author, content: string, to?: string[], minutes?: number];

/** A log of messages, with ids m1, m2, … */
export function logOf(...said: Said[]): Event[] {
  return said.map(([author, content, to = [], minutes = 0], n) => {
    const draft = { id: `m${n + 1}`, author, to: to as AgentId[], kind: 'message', body: { content } };
    return logged(draft as unknown as EventDraft, n + 1, SAID_AT + minutes * 60_000);
  });
}
