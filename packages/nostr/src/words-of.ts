import { type AgentId, type Event, parseTurnId } from './troupe.ts';

/**
 * What an agent says to everybody with an event: a message, or a question to people. Null for all other events.
 * Only what a turn of that agent in this conversation has said counts: a client may bring words as those of an agent, and
 * nothing is signed for it.
 */
export function wordsOf(event: Event): { agent: AgentId; content: string } | null {
  const { author, turn, conversation } = event;
  const content = contentOf(event);
  const made = turn === undefined ? null : parseTurnId(turn);
  if (content === null || content.trim() === '' || author.kind !== 'agent') return null;
  if (made?.agent !== author.id || made.conversation !== conversation) return null;
  return { agent: made.agent, content };
}

function contentOf(event: Event): string | null {
  if (event.kind === 'message') return event.body.content;
  if (event.kind !== 'question') return null;
  const { text, choices = [] } = event.body;
  return [text, ...choices.map((choice) => `- ${choice}`)].join('\n');
}
