import type { AgentId, Event } from '../../events/index.ts';
import { eventText, visibleText } from '../event-text.ts';

/**
 * The words by which an agent may find an event again, or null. Its own calls and results count, those of others are
 * hidden from it; notes of the runtime were about their moment. `viewer` null stands for what everybody sees.
 */
export function memoryText(event: Event, viewer: AgentId | null): string | null {
  if (event.kind === 'injection' || event.kind === 'command') return null;
  const isOwn = event.author.kind === 'agent' && event.author.id === viewer;
  const text = isOwn ? eventText(event) : visibleText(event);
  return text === null || text.trim() === '' ? null : text;
}
