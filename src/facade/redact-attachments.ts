import type { Redaction } from '../actors/log/redaction.ts';
import type { NewAttachment, NewMessage } from '../troupe.ts';
import { plainType } from './read-attachments.ts';

const TEXT_TYPE = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|x-ndjson)\b)/;

/** What comes with a message, its texts redacted before anything is made of them. Nobody looks into images and other files. */
export function attachedBy(
  { attachments, author }: { attachments: readonly NewAttachment[]; author: NewMessage['author'] },
  redaction: Redaction | undefined,
): readonly NewAttachment[] {
  if (!redaction) return attachments;
  return attachments.map((each) => {
    const text = TEXT_TYPE.test(plainType(each.mediaType)) ? textOf(each) : null;
    if (text === null) return each;
    const made = redaction.text(text, { kind: 'message', author });
    return made === text ? each : { ...each, data: Buffer.from(made) };
  });
}

/** Null for what is not UTF-8, or no base64: that is refused later, or kept as a file. */
function textOf({ data }: NewAttachment): string | null {
  const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : Buffer.from(data);
  if (typeof data === 'string' && bytes.toString('base64') !== data) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
