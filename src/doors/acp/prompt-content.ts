import type { NewAttachment } from '../../library/message.ts';

/** A piece of what the user of an editor says, as the protocol has it. */
export type ContentBlock =
  | { type: 'text'; text: string }
  | { type: 'image'; mimeType: string; data: string }
  | { type: 'audio'; mimeType: string; data: string }
  | { type: 'resource_link'; uri: string; name: string }
  | { type: 'resource'; resource: { uri: string; mimeType?: string | null; text?: string; blob?: string } };

/** A prompt as a message: files that the editor sends are attachments, and links are named in the text. */
export function promptContent(blocks: readonly ContentBlock[]): {
  content: string;
  attachments: NewAttachment[];
} {
  const texts: string[] = [];
  const attachments: NewAttachment[] = [];
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
        texts.push(block.text);
        break;
      case 'resource_link':
        texts.push(`[${block.name}](${block.uri})`);
        break;
      case 'image':
      case 'audio':
        attachments.push({ mediaType: block.mimeType, data: block.data });
        break;
      case 'resource': {
        const { uri, mimeType, text, blob } = block.resource;
        const name = uri.slice(uri.lastIndexOf('/') + 1).slice(0, 200) || 'file';
        const data = blob ?? new TextEncoder().encode(text ?? '');
        attachments.push({
          name,
          mediaType: mimeType ?? (blob === undefined ? 'text/plain' : 'application/octet-stream'),
          data,
        });
      }
    }
  }
  return { content: texts.join('\n'), attachments };
}
