import { type Event, eventOf, forKind } from '../../events/index.ts';

/** Words that come at once, as one message. Null: none, or they are those of a turn and were told as it went. */
export function wordsOf(event: Event): string | null {
  if (event.kind === 'message' && event.author.kind === 'agent' && event.turn !== undefined) return null;
  const words = forKind(
    {
      message: ({ body }) => body.content,
      notice: ({ body }) => body.content,
      question: ({ body }) => body.text,
      'question.answered': ({ body }) => (body.outcome === 'answered' ? body.content : null),
    },
    event,
  );
  return words ?? null;
}

/** What AG-UI has no event for. */
export function noticeOf(event: Event): { name: string; value: unknown } | null {
  const { author, to, kind, body } = event;
  if (kind === 'handoff')
    return { name: 'troupe.handoff', value: { from: author.id, to, summary: body.summary } };
  return kind === 'guard.stopped' ? { name: 'troupe.stopped', value: { agent: author.id, ...body } } : null;
}

/** What the client is shown as the result of a call that was not approved. */
export function refusalOf(event: Event): { request: string; outcome: string; text: string } | null {
  const decided = eventOf(event, 'approval.decided');
  if (!decided || decided.body.outcome === 'approved') return null;
  const { request, outcome, note } = decided.body;
  return { request, outcome, text: note === '' ? `[${outcome}]` : `[${outcome}: ${note}]` };
}
