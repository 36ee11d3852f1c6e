import { ConversationId, TroupeError } from '../troupe.ts';

/** A message or a command in the log, and what comes of it. Clients know it as `CONVERSATION:SEQ`. */
export interface ExchangeId {
  conversation: ConversationId;
  /** Seq of the event. */
  seq: number;
}

/** Ids of conversations may contain colons themselves. */
const FORM = /^(.{1,128}):(\d{1,15})$/;

export function exchangeId({ conversation, seq }: ExchangeId): string {
  return `${conversation}:${seq}`;
}

/** Throws `event_invalid`. */
export function parseExchangeId(text: string): ExchangeId {
  const [, name, digits] = FORM.exec(text) ?? [];
  const conversation = ConversationId.safeParse(name);
  const seq = Number(digits);
  if (conversation.success && seq > 0) return { conversation: conversation.data, seq };
  const message = `"${text.slice(0, 200)}" is no id of an answer: it looks like CONVERSATION:NUMBER, as "ask" gives it`;
  throw new TroupeError('event_invalid', message, { path: 'id' });
}
