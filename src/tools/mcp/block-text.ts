import type { ContentBlock, EmbeddedResource } from '@modelcontextprotocol/client';

/** A part as the model sees it: text is shown whole, anything else as one line that names it. */
export function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'image':
    case 'audio':
      return notShown([block.type, block.mimeType], decodedBytes(block.data));
    case 'resource_link':
      return notShown(['resource', block.uri, block.mimeType], block.size);
    case 'resource':
      return resourceText(block.resource);
    default:
      return block satisfies never;
  }
}

export function resourceText(resource: EmbeddedResource['resource']): string {
  const { uri, mimeType } = resource;
  if ('blob' in resource) return notShown(['resource', uri, mimeType], decodedBytes(resource.blob));
  return `[${['resource', uri, mimeType].filter(Boolean).join(' ')}]\n${resource.text}`;
}

function notShown(what: readonly (string | undefined)[], bytes: number | undefined): string {
  const size = bytes === undefined ? '' : `, ${bytes} bytes`;
  return `[${what.filter(Boolean).join(' ')}${size}: not shown]`;
}

function decodedBytes(base64: string): number {
  return Buffer.byteLength(base64, 'base64');
}
