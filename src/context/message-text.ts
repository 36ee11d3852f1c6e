import type { Attachment, Event, EventDraft, ImageRef, MessageBody } from '../events/index.ts';

const MAX_NAME_CHARS = 100;

/** All the words of a message: what was said, then what came with it, a line each; of a short text all of it. */
export function messageText({ content, attachments }: MessageBody): string {
  if (!attachments) return content;
  const lines = attachments.map(attachmentText);
  return content.trim() === '' ? lines.join('\n') : [content, ...lines].join('\n');
}

function attachmentText(attachment: Attachment): string {
  const { type, mediaType, name } = attachment;
  if (type === 'text') return `[text: ${oneName(name ?? mediaType)}]\n${attachment.text}`;
  const kilobytes = Math.ceil(attachment.bytes / 1_000);
  return `[${type}: ${[...(name === undefined ? [] : [oneName(name)]), mediaType, `${kilobytes} kB`].join(', ')}]`;
}

/** A name in one line and without brackets, so that it ends where its line does. */
function oneName(name: string): string {
  const line = name
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replaceAll('[', '(')
    .replaceAll(']', ')');
  return line.length <= MAX_NAME_CHARS ? line : `${line.slice(0, MAX_NAME_CHARS - 1).toWellFormed()}…`;
}

/** What of an event is shown as pictures. */
export function imagesOf(event: Event | EventDraft): ImageRef[] {
  if (event.kind !== 'message') return [];
  return (event.body.attachments ?? []).flatMap((attachment) =>
    attachment.type === 'image' ? [{ hash: attachment.hash, mediaType: attachment.mediaType }] : [],
  );
}

/** What stands for images where prompts are compared by a text; '' for none. */
export function imagesText(images: readonly ImageRef[] = []): string {
  return images.length === 0 ? '' : JSON.stringify(images.map(({ hash, mediaType }) => [hash, mediaType]));
}
