import * as z from 'zod';
import { TroupeError } from '../../errors.ts';
import { imageAt, type Said } from './said.ts';

const Part = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  image_url: z.looseObject({ url: z.string().max(32 * 1_024 * 1_024) }).optional(),
});
const Message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: z.union([z.string(), z.array(Part)]).nullish(),
});
type Message = z.infer<typeof Message>;

/** The body of `POST /chat/completions`. Fields that only shape a model's answer, such as `temperature`, are not used. */
export const ChatRequest = z.looseObject({
  /** Id of the agent that is addressed; `troupe`: whom the conversation's routing names. */
  model: z.string().min(1).max(128),
  messages: z.array(Message).min(1).max(10_000),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.literal(1, 'one answer only').nullish(),
  tools: z.array(z.unknown()).max(0, 'agents have tools of their own: leave them out').nullish(),
});
export type ChatRequest = z.infer<typeof ChatRequest>;

/**
 * The messages of the user since the last answer. Before the first answer the texts of the system come first: later they are
 * in the log already. Throws `event_invalid` if the user says nothing, or if a new conversation has earlier answers.
 */
export function saidIn({ messages }: ChatRequest, { isNew }: { isNew: boolean }): Said {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  if (isNew && last >= 0) throw new TroupeError('event_invalid', CONTINUED, { path: 'messages' });
  const fresh = messages
    .slice(last + 1)
    .filter(({ role }) => role === 'user' || (last < 0 && isSystem(role)));
  const content = fresh
    .map(textOf)
    .filter((text) => text !== '')
    .join('\n\n');
  const attachments = fresh.flatMap(imagesOf);
  if (!fresh.some(({ role }) => role === 'user') || (content === '' && attachments.length === 0))
    throw new TroupeError('event_invalid', 'messages: the last message must be one of the user', {
      path: 'messages',
    });
  return { content, attachments };
}

const CONTINUED =
  'messages: a new conversation begins without answers; to go on with one, name it in the base URL: /api/conversations/ID/v1. The header x-troupe-conversation of the first answer has its id';

function isSystem(role: Message['role']): boolean {
  return role === 'system' || role === 'developer';
}

function textOf({ content }: Message): string {
  if (typeof content === 'string') return content;
  return (content ?? []).flatMap(({ type, text }) => (type === 'text' && text ? [text] : [])).join('\n');
}

function imagesOf({ content }: Message): Said['attachments'] {
  if (typeof content === 'string') return [];
  return (content ?? []).flatMap((part): Said['attachments'] => {
    if (part.type === 'text') return [];
    if (part.type === 'image_url' && part.image_url) return [imageAt(part.image_url.url)];
    throw new TroupeError('event_invalid', `messages: parts of the type "${part.type}" are not taken`, {
      path: 'messages',
    });
  });
}
