import type { AttachmentByAddress, NewAttachment } from '../../message.ts';

/** What a client says in one request. */
export interface Said {
  content: string;
  attachments: (NewAttachment | AttachmentByAddress)[];
}

/** An image at an address, or within it. */
export function imageAt(url: string): NewAttachment | AttachmentByAddress {
  const [, mediaType, data] = /^data:([a-z]+\/[a-z0-9.+-]+);base64,([^]*)$/i.exec(url) ?? [];
  return mediaType !== undefined && data !== undefined ? { mediaType, data } : { url };
}
