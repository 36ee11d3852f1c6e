import * as z from 'zod';

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
