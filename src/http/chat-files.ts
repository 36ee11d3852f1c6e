import type { UiPart } from '../doors/ui-stream/ui-message.ts';
import { TroupeError } from '../errors.ts';
import type { Event } from '../events/index.ts';
import type { Troupe } from '../troupe.ts';

/** Most bytes of files within one answer; the others are named only. */
const MOST_BYTES = 4 * 1_024 * 1_024;

/** The attachments of messages as parts, with their contents as data URLs. */
export function filesIn(troupe: Troupe): (event: Event) => Promise<UiPart[]> {
  let left = MOST_BYTES;
  return async ({ kind, body, conversation, seq }) => {
    if (kind !== 'message' && kind !== 'notice') return [];
    const parts: UiPart[] = [];
    for (const [index, given] of (body.attachments ?? []).entries()) {
      const bytes = given.type === 'text' ? Buffer.byteLength(given.text) : given.bytes;
      const { mediaType, name } = given;
      // Imports have no bytes.
      const data = bytes > left ? null : await readOrNull(troupe, conversation, { seq, index });
      if (!data) {
        parts.push({ type: 'data-file', data: { mediaType, name, bytes } });
        continue;
      }
      left -= bytes;
      const url = `data:${mediaType};base64,${Buffer.from(data).toString('base64')}`;
      parts.push({ type: 'file', mediaType, ...(name !== undefined && { filename: name }), url });
    }
    return parts;
  };
}

async function readOrNull(
  troupe: Troupe,
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
