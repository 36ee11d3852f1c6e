import type { UiPart } from '../doors/ui-stream/ui-message.ts';
import type { Event } from '../events/index.ts';
import type { Troupe } from '../library/troupe.ts';
import { type EventFile, filesIn } from './event-files.ts';

/** The attachments of messages as parts of a chat, with their contents as data URLs. */
export function filePartsIn(troupe: Troupe): (event: Event) => Promise<UiPart[]> {
  const files = filesIn(troupe);
  return async (event) => (await files(event)).map(partOf);
}

function partOf({ mediaType, name, bytes, base64 }: EventFile): UiPart {
  if (base64 === null) return { type: 'data-file', data: { mediaType, name, bytes } };
  const url = `data:${mediaType};base64,${base64}`;
  return { type: 'file', mediaType, ...(name !== undefined && { filename: name }), url };
}
