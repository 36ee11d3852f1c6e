import * as z from 'zod';
import { type AttachmentByAddress, type NewAttachment, TroupeError } from '../troupe.ts';

const Id = z.string().min(1).max(256);
const Part = z.looseObject({
  type: z.string().max(256),
  text: z.string().optional(),
  url: z.string().optional(),
  mediaType: z.string().max(255).optional(),
  filename: z.string().max(255).nullish(),
  state: z.string().max(64).optional(),
  approval: z
    .looseObject({
      id: z.string().min(1).max(256),
      approved: z.boolean().nullish(),
      reason: z.string().max(10_000).nullish(),
    })
    .nullish(),
  data: z.unknown().optional(),
});
type Part = z.infer<typeof Part>;
const To = z.array(z.string().min(1).max(128)).max(256);
const Message = z.looseObject({
  id: Id.optional(),
  role: z.enum(['system', 'user', 'assistant']),
  metadata: z.unknown().optional(),
  parts: z.array(Part).max(10_000),
});
const AnswerData = z.looseObject({ question: z.string().min(1).max(256), content: z.string().optional() });

/** What `DefaultChatTransport` posts. Of the messages only the newest is read: the rest is in the log. */
export const UiChatRequest = z.looseObject({
  /** The client's id of the chat. The conversation is that of the path. */
  id: z.string().max(1_024).optional(),
  messages: z.array(z.unknown()).min(1).max(10_000),
  /** `regenerate-message` tells the answer again. */
  trigger: z.enum(['submit-message', 'regenerate-message']).optional(),
  /** Of the message that goes on, when approvals were decided. */
  messageId: Id.nullish(),
  /** Agents to whom the message is addressed. */
  to: To.optional(),
});
export type UiChatRequest = z.infer<typeof UiChatRequest>;

/** A decision of the client's user. */
export interface UiDecision {
  /** Id of the approval, as clients have it. */
  approval: string;
  approved: boolean;
  note: string;
}

/** What a request is for. */
export type UiAsked =
  | {
      ask: 'say';
      id: string;
      content: string;
      to: string[] | undefined;
      attachments: (NewAttachment | AttachmentByAddress)[];
    }
  | { ask: 'answer'; question: string; content: string }
  | { ask: 'decide'; decisions: UiDecision[] };

/** Throws `event_invalid`. */
export function askedIn({ messages, messageId, to }: UiChatRequest): UiAsked {
  const message = newest(messages, messageId ?? null);
  if (message.role === 'assistant') {
    const decisions = message.parts.flatMap(decisionIn);
    if (decisions.length === 0)
      throw invalid('the last message is neither one of the user nor one with decided approvals');
    return { ask: 'decide', decisions };
  }
  if (message.role !== 'user') throw invalid('the last message must be one of the user');
  if (message.id === undefined) throw invalid('the message needs an id: it makes a repeated request safe');
  const content = message.parts
    .flatMap(({ type, text }) => (type === 'text' && text ? [text] : []))
    .join('\n\n');
  const answer = message.parts.find(({ type }) => type === 'data-answer');
  if (answer) {
    const { success, data } = AnswerData.safeParse(answer.data);
    if (!success) throw invalid('data-answer needs { question }, and the words as text or as content');
    return { ask: 'answer', question: data.question, content: data.content ?? content };
  }
  const attachments = message.parts.flatMap(fileIn);
  if (content === '' && attachments.length === 0) throw invalid('the message says nothing');
  const named = z.looseObject({ to: To }).safeParse(message.metadata);
  return { ask: 'say', id: message.id, content, attachments, to: to ?? named.data?.to };
}

/** With approvals, the message that was decided may have others after it. */
function newest(messages: readonly unknown[], messageId: string | null): z.infer<typeof Message> {
  const at = messageId === null ? -1 : messages.findLastIndex((each) => Object(each).id === messageId);
  const index = at >= 0 ? at : messages.length - 1;
  const { success, data, error } = Message.safeParse(messages[index]);
  if (success) return data;
  const [issue] = error.issues;
  throw invalid(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`, `messages.${index}`);
}

function decisionIn({ state, approval }: Part): UiDecision[] {
  if (state !== 'approval-responded' || !approval || typeof approval.approved !== 'boolean') return [];
  const { id, approved, reason } = approval;
  return [{ approval: id, approved, note: reason ?? '' }];
}

function fileIn({ type, url = '', mediaType, filename }: Part): (NewAttachment | AttachmentByAddress)[] {
  if (type !== 'file') return [];
  const name = filename ? { name: filename } : {};
  const given = mediaType ? { mediaType } : {};
  if (!url.startsWith('data:')) return [{ ...name, ...given, url }];
  const comma = url.indexOf(',');
  const head = url.slice('data:'.length, comma).split(';');
  if (comma < 0 || head.at(-1)?.trim() !== 'base64') throw invalid('files within messages are base64');
  return [
    { ...name, mediaType: mediaType || head[0] || 'application/octet-stream', data: url.slice(comma + 1) },
  ];
}

function invalid(message: string, path = 'messages'): TroupeError {
  return new TroupeError('event_invalid', `${path}: ${message}`, { path });
}
