import * as z from 'zod';
import { AgentId, JoinPolicy } from './ids.ts';

export const MAX_MESSAGE_ATTACHMENTS = 16;
/** Most bytes of all attachments of one message together. */
export const MAX_ATTACHED_BYTES = 20 * 1_024 * 1_024;

/** Media types that models can see. */
export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;
export const ImageType = z.enum(IMAGE_TYPES);
export type ImageType = z.infer<typeof ImageType>;

/** SHA-256 of the bytes. The store keeps them under this hash, as base64. */
const BytesHash = z.string().regex(/^[0-9a-f]{64}$/);
export const AttachmentName = z.string().min(1).max(255);
export const MediaType = z
  .string()
  .max(127)
  .regex(/^[\w.+-]+\/[\w.+-]+$/, 'a media type is of the form type/subtype');

/** An attachment of a message. Short texts are in the event; all others are referred to by their hash. */
export const Attachment = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('image'),
    hash: BytesHash,
    mediaType: ImageType,
    name: AttachmentName.optional(),
    bytes: z.int().positive(),
  }),
  /** Stored. Models see only its name, type and size. */
  z.strictObject({
    type: z.literal('file'),
    hash: BytesHash,
    mediaType: MediaType,
    name: AttachmentName.optional(),
    bytes: z.int().positive(),
  }),
  z.strictObject({
    type: z.literal('text'),
    mediaType: MediaType,
    name: AttachmentName.optional(),
    text: z.string(),
  }),
]);
export type Attachment = z.infer<typeof Attachment>;

/** Reference of a prompt to an image. */
export const ImageRef = z.object({ hash: BytesHash, mediaType: ImageType });
export type ImageRef = z.infer<typeof ImageRef>;

/** Maximum depth of JSON: `JSON.parse` accepts any, but `JSON.stringify` overflows the stack at a few thousand levels. */
export const MAX_DATA_DEPTH = 200;

/** Any JSON value that can be serialized again. */
export const JsonData = z
  .unknown()
  .refine((value) => isWithin(value, MAX_DATA_DEPTH), `is nested deeper than ${MAX_DATA_DEPTH} levels`);

function isWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((item) => isWithin(item, levels - 1));
}

/** The form in which the writer of a message wants its answer. */
export const AskedReply = z.strictObject({
  /** A JSON schema. */
  schema: z.record(z.string(), JsonData),
  /** The client's tool whose arguments the answer is to be. */
  tool: z.string().min(1).max(64).optional(),
  /** The answer may call the client's tools: it has `calls`, and text as `say`. `optional`: plain text is accepted, too. */
  calls: z.enum(['optional', 'required']).optional(),
});
export type AskedReply = z.infer<typeof AskedReply>;

/** A message to everyone, or to the agents in `to`. */
export const MessageBody = z.strictObject({
  content: z.string(),
  /** The content as JSON, for agents that must reply in JSON. */
  data: JsonData.optional(),
  attachments: z.array(Attachment).min(1).max(MAX_MESSAGE_ATTACHMENTS).optional(),
});
export type MessageBody = z.infer<typeof MessageBody>;

/**
 * A message outside the context of agents: stored and shown to people. It is in no prompt, memory or summary, and it wakes
 * nobody. Clients send it as a message with `includeInContext: false`.
 */
export const NoticeBody = MessageBody.omit({ data: true });
export type NoticeBody = z.infer<typeof NoticeBody>;

/** Summary of a handoff. It opens the receiver's next prompt. */
export const HandoffSummary = z.strictObject({
  goal: z.string().min(1),
  done: z.string().default(''),
  state: z.string().default(''),
  next: z.string().default(''),
  openQuestions: z.array(z.string()).default([]),
  artifacts: z.array(z.string()).default([]),
  why: z.string().default(''),
  /** The writer of the summary. Default, as in older logs: the agent that hands off. */
  by: z.enum(['agent', 'compactor', 'extraction']).optional(),
});
export type HandoffSummary = z.infer<typeof HandoffSummary>;

/** The summary as an argument of a tool. Models may omit empty fields. */
export const HandoffDraft = HandoffSummary.extend({ goal: z.string().default('') });
export type HandoffDraft = z.infer<typeof HandoffDraft>;

export const HandoffBody = z.strictObject({ summary: HandoffSummary });

/** An agent begins or ceases to take part in a conversation. */
export const MembershipChangedBody = z.discriminatedUnion('change', [
  z.strictObject({ change: z.literal('joined'), agent: AgentId, policy: JoinPolicy }),
  z.strictObject({
    change: z.literal('left'),
    agent: AgentId,
    reason: z.string(),
    /** Only messages of trusted people wake the agent. */
    blocked: z.boolean().optional(),
  }),
]);
export type MembershipChangedBody = z.infer<typeof MembershipChangedBody>;

/** A note of the runtime to an agent. Only the agent's next step sees a `oneStep` note. */
export const InjectionBody = z.strictObject({ content: z.string(), oneStep: z.boolean().default(false) });
