import { TroupeError } from '../errors.ts';
import { ConversationId, EventDraft, tryParse } from '../events/index.ts';

/** What callers hand in, as the typed thing it must be. Throws `event_invalid` with the path of the first problem. */
export function parseDraft(input: unknown): EventDraft {
  const parsed = tryParse(EventDraft, input);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = issue?.path.map(String).join('.') ?? '';
  throw new TroupeError('event_invalid', `${path || 'event'}: ${issue?.message}`, { path });
}

export function conversationId(text: string): ConversationId {
  const parsed = ConversationId.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new TroupeError('event_invalid', `conversation: ${parsed.error.issues[0]?.message}`, {
    path: 'conversation',
  });
}
