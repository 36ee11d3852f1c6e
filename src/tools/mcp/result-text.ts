import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/sdk/types.js';

/** A result as the model is told it: texts whole, anything else named in a line. */
export function resultText({ content, structuredContent }: CallToolResult): string {
  const lines = content.map(blockText);
  const hasText = content.some((block) => block.type === 'text' && block.text !== '');
  // Servers repeat structured content as text; where one does not, it is all there is.
  if (!hasText && structuredContent) lines.unshift(JSON.stringify(structuredContent));
  return lines.filter((line) => line !== '').join('\n');
}

function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'image':
    case 'audio':
      return notShown([block.type, block.mimeType], decodedBytes(block.data));
    case 'resource_link':
      return notShown(['resource', block.uri, block.mimeType], block.size);
    case 'resource': {
      const { uri, mimeType } = block.resource;
      if ('blob' in block.resource)
        return notShown(['resource', uri, mimeType], decodedBytes(block.resource.blob));
      return `[${['resource', uri, mimeType].filter(Boolean).join(' ')}]\n${block.resource.text}`;
    }
    default:
      return block satisfies never;
  }
}

function notShown(what: readonly (string | undefined)[], bytes: number | undefined): string {
  const size = bytes === undefined ? '' : `, ${bytes} bytes`;
  return `[${what.filter(Boolean).join(' ')}${size}: not shown]`;
}

function decodedBytes(base64: string): number {
  return Buffer.byteLength(base64, 'base64');
}
