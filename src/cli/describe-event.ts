import { messageText } from '../context/message-text.ts';
import type { Event } from '../events/index.ts';
import { ranges } from './render-prompt.ts';

/** What an event says, in a line. */
export function describeEvent(event: Event): string {
  const who = event.author.name;
  const to = event.to.length > 0 ? ` → ${event.to.map((agent) => `@${agent}`).join(' ')}` : '';
  switch (event.kind) {
    case 'message':
      return `${who}${to}: ${messageText(event.body)}`;
    case 'injection':
      return `${who}${to}: ${event.body.content}`;
    case 'step':
      return `${who} calls ${event.body.calls.map(({ name, args }) => `${name} ${args}`).join(', ')}`;
    case 'tool.result':
      return `${event.body.name} ${event.body.outcome}: ${event.body.content}`;
    case 'handoff':
      return `${who}${to}: ${event.body.summary.goal}`;
    case 'turn.started':
      return `sees up to ${event.body.upTo}, answers ${ranges(event.body.inputs)}`;
    case 'turn.done': {
      const { steps, usage, cut } = event.body;
      const end = cut ? ', cut off at maxOutputTokens' : '';
      return `${steps} step(s), ${usage.input} tokens in, ${usage.output} out${end}`;
    }
    case 'turn.failed':
    case 'error':
      return `${event.body.code}: ${event.body.message}`;
    case 'session.started':
    case 'session.resumed':
    case 'session.rewound':
    case 'session.compacted':
    case 'session.lost':
    case 'session.rebuilt': {
      const { provider, session, reason } = event.body;
      return `${provider} ${session}${reason === undefined ? '' : ` (${reason})`}`;
    }
    case 'turn.aborted':
      return `stopped by ${event.body.by}`;
    default:
      return `${who}${to}: ${JSON.stringify(event.body)}`;
  }
}
