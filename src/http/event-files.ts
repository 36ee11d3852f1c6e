import { TroupeError } from '../base/errors.ts';
import type { Attachment, Event } from '../events/index.ts';
import type { Troupe } from '../library/troupe.ts';

/** Most bytes of files within one answer; the others are named only. */
const MOST_BYTES = 4 * 1_024 * 1_024;

/** An attachment of a message. `base64` is null where it has no bytes, as in an import, or there is no more room. */
export interface EventFile {
  /** Its media type. */
  mediaType: string;
  /** Its name, if it has one. */
  name: string | undefined;
  /** Its size. */
  bytes: number;
  /** Its bytes. */
  base64: string | null;
}

/** Reads the attachments of messages, for one answer: later ones find the room that earlier ones have left. */
export function filesIn(troupe: Pick<Troupe, 'attachment'>): (event: Event) => Promise<EventFile[]> {
  let left = MOST_BYTES;
  return async ({ kind, body, conversation, seq }) => {
    if (kind !== 'message' && kind !== 'notice') return [];
    const files: EventFile[] = [];
    for (const [index, given] of (body.attachments ?? []).entries()) {
      const bytes = sizeOf(given);
      const data = bytes > left ? null : await readOrNull(troupe, conversation, { seq, index });
      if (data) left -= bytes;
      const base64 = data && Buffer.from(data).toString('base64');
      files.push({ mediaType: given.mediaType, name: given.name, bytes, base64 });
    }
    return files;
  };
}

function sizeOf(attachment: Attachment): number {
  return attachment.type === 'text' ? Buffer.byteLength(attachment.text) : attachment.bytes;
}

async function readOrNull(
  troupe: Pick<Troupe, 'attachment'>,
  conversation: string,
  { seq, index }: { seq: number; index: number },
): Promise<Uint8Array | null> {
  try {
    return (await troupe.attachment(conversation, seq, index)).data;
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'event_invalid') return null;
    throw error;
  }
}
