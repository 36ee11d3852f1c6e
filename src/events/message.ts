import * as z from 'zod';
import { AgentId } from './ids.ts';

/** Pieces of one message, and their bytes together. */
export const MAX_MESSAGE_ATTACHMENTS = 16;
export const MAX_ATTACHED_BYTES = 20 * 1_024 * 1_024;

/** What models are shown as pictures. */
export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const;
export const ImageType = z.enum(IMAGE_TYPES);
export type ImageType = z.infer<typeof ImageType>;

/** SHA-256 of the bytes; the store has them under it, as base64. */
const BytesHash = z.string().regex(/^[0-9a-f]{64}$/);
export const AttachmentName = z.string().min(1).max(255);
export const MediaType = z
  .string()
  .max(127)
  .regex(/^[\w.+-]+\/[\w.+-]+$/, 'a media type is of the form type/subtype');

/** What came with a message. Short texts are part of the event; of all else it has the hash. */
export const Attachment = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('image'),
    hash: BytesHash,
    mediaType: ImageType,
    name: AttachmentName.optional(),
    bytes: z.int().positive(),
  }),
  /** Kept, and named to models. */
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

/** An image as a prompt refers to it. */
export const ImageRef = z.object({ hash: BytesHash, mediaType: ImageType });
export type ImageRef = z.infer<typeof ImageRef>;

/** Readers of JSON take any depth, writers end in a stack overflow at some thousands of levels. */
export const MAX_DATA_DEPTH = 200;

/** A JSON value of any shape that can be written again. */
export const JsonData = z
  .unknown()
  .refine((value) => isWithin(value, MAX_DATA_DEPTH), `is nested deeper than ${MAX_DATA_DEPTH} levels`);

function isWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((item) => isWithin(item, levels - 1));
}

/** What was said, to everyone or to the agents in `to`. */
export const MessageBody = z.strictObject({
  content: z.string(),
  /** The same as JSON, where an agent must reply so; nobody else can say any. */
  data: JsonData.optional(),
  attachments: z.array(Attachment).min(1).max(MAX_MESSAGE_ATTACHMENTS).optional(),
});
export type MessageBody = z.infer<typeof MessageBody>;

/** A structured handing over of the conversation; it opens the receiver's next prompt. */
export const HandoffSummary = z.strictObject({
  goal: z.string().min(1),
  done: z.string().default(''),
  state: z.string().default(''),
  next: z.string().default(''),
  openQuestions: z.array(z.string()).default([]),
  artifacts: z.array(z.string()).default([]),
  why: z.string().default(''),
  /** Who wrote it; the handing agent where nothing is said, as in logs from before there was another. */
  by: z.enum(['agent', 'compactor', 'extraction']).optional(),
});
export type HandoffSummary = z.infer<typeof HandoffSummary>;

/** A summary as a tool asks for it: what is empty in it was left out. */
export const HandoffDraft = HandoffSummary.extend({ goal: z.string().default('') });
export type HandoffDraft = z.infer<typeof HandoffDraft>;

export const HandoffBody = z.strictObject({ summary: HandoffSummary });
export const JoinedBody = z.strictObject({ agent: AgentId, policy: z.enum(['full', 'summary', 'fresh']) });
/** `blocked`: what others than trusted people say to it wakes it no more. */
export const LeftBody = z.strictObject({
  agent: AgentId,
  reason: z.string().default(''),
  blocked: z.boolean().optional(),
});
export type LeftBody = z.infer<typeof LeftBody>;
/** A note of the runtime to an agent (supervision, nudge); `oneStep` notes are seen by its next step alone, and by nobody else. */
export const InjectionBody = z.strictObject({ content: z.string(), oneStep: z.boolean().default(false) });
