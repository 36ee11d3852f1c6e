import type { UiPart } from '../doors/ui-stream/ui-message.ts';
import type { Event } from '../events/index.ts';
import type { Troupe } from '../troupe.ts';

/** The attachments of messages as parts, with their contents. */
export function filesIn(_troupe: Troupe): (event: Event) => Promise<UiPart[]> {
  return async (event) => {
    if (event.kind !== 'message' && event.kind !== 'notice') return [];
    return (event.body.attachments ?? []).flatMap((each): UiPart[] => {
      if (each.type !== 'text') return [];
      const { mediaType, name, text } = each;
      return [fileOf({ mediaType, name, base64: Buffer.from(text).toString('base64') })];
    });
  };
}

function fileOf({
  mediaType,
  name,
  base64,
}: {
  mediaType: string;
  name: string | undefined;
  base64: string;
}): UiPart {
  const url = `data:${mediaType};base64,${base64}`;
  return { type: 'file', mediaType, ...(name !== undefined && { filename: name }), url };
}
