import type { Event } from '../../../../src/events/index.ts';
import { handoffText, messageText } from '../../../../src/events/message-text.ts';
import { summariseEvent, eventInWords } from '../../../../src/library/projection/summarise-event.ts';
import { prettyJson } from './tool-uses.ts';

/** All text of an event; for a kind unknown to this version, its content. */
export function eventWords(event: Event): string {
  try {
    return wordsOf(event);
  } catch {
    return JSON.stringify(event.body, null, 2) ?? '';
  }
}

function wordsOf(event: Event): string {
  if (event.kind === 'compaction') return event.body.summary || event.body.demands || event.body.listing;
  if (event.kind === 'turn.failed' || event.kind === 'error')
    return [`${event.body.code}: ${event.body.message}`, event.body.partial ?? ''].join('\n').trim();
  if (event.kind === 'message' || event.kind === 'notice') return messageText(event.body);
  if (event.kind === 'handoff') return handoffText(event.body.summary);
  if (event.kind === 'tool.result') return event.body.content;
  if (event.kind !== 'step') return eventInWords(event)?.text ?? summariseEvent(event);
  const calls = event.body.calls.map(({ name, args }) => `→ ${name} ${prettyJson(args)}`);
  return [event.body.content, ...calls].join('\n').trim();
}
