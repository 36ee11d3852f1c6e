import type { Event } from '../../../../src/events/index.ts';
import { handoffText, messageText } from '../../../../src/inspector/message-text.ts';
import { summariseEvent, tellEvent } from '../../../../src/inspector/summarise-event.ts';
import { prettyJson } from './tool-uses.ts';

/** All the words of an event; of a kind that this version does not know, what it holds. */
export function eventWords(event: Event): string {
  try {
    return wordsOf(event);
  } catch {
    return JSON.stringify(event.body, null, 2) ?? '';
  }
}

function wordsOf(event: Event): string {
  switch (event.kind) {
    case 'message':
      return messageText(event.body);
    case 'handoff':
      return handoffText(event.body.summary);
    case 'tool.result':
      return event.body.content;
    case 'step': {
      const calls = event.body.calls.map(({ name, args }) => `→ ${name} ${prettyJson(args)}`);
      return [event.body.content, ...calls].join('\n').trim();
    }
    case 'compaction':
      return event.body.summary || event.body.listing;
    case 'turn.failed':
    case 'error':
      return [`${event.body.code}: ${event.body.message}`, event.body.partial ?? ''].join('\n').trim();
    default:
      return tellEvent(event)?.text ?? summariseEvent(event);
  }
}
