import type { Event } from '../events/index.ts';
import { tellEvent } from '../projection/summarise-event.ts';

/** What an event says, in a line. */
export function describeEvent(event: Event): string {
  const told = tellEvent(event);
  if (told) return `${told.head}${told.text}`;
  const to = event.to.length > 0 ? ` → ${event.to.map((agent) => `@${agent}`).join(' ')}` : '';
  return `${event.author.name}${to}: ${JSON.stringify(event.body)}`;
}
