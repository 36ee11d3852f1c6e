import { isRecord, itemsOf, jsonText, textOf } from './results.ts';

/** Limit of the parts of one result. */
const MAX_PARTS = 1_000;
/** Of a part that is no part of the protocol. */
const UNKNOWN_CHARACTERS = 2_000;

/**
 * A result as the model sees it. The tool has run, so it is read part by part, whatever its form: text is shown whole,
 * anything else as a line that names it.
 */
export function resultText(result: unknown): string {
  if (!isRecord(result)) return typeof result === 'string' ? result : result === null ? '' : jsonText(result);
  const { content, structuredContent = null, isError: _, _meta, resultType: __, ...more } = result;
  const lines = blocksText(content);
  // Servers repeat structured content as text. If one does not, it is the whole result.
  const hasText = itemsOf(content).some(
    (part) => typeof part === 'string' || Boolean(textOf(Object(part)['text'])),
  );
  if (!hasText && structuredContent !== null) lines.unshift(jsonText(structuredContent));
  const isOther = content === undefined && structuredContent === null && Object.keys(more).length > 0;
  if (isOther) lines.push(jsonText(more));
  return lines.filter((line) => line !== '').join('\n');
}

/** The texts of parts. Surplus ones are counted. */
export function blocksText(content: unknown): string[] {
  const parts = itemsOf(content);
  const left = parts.length - MAX_PARTS;
  const lines = parts.slice(0, MAX_PARTS).map(blockText);
  return left > 0 ? [...lines, `[${left} more parts: not shown]`] : lines;
}

export function blockText(block: unknown): string {
  if (typeof block === 'string') return block;
  if (!isRecord(block)) return block === null ? '' : unknownText('', block);
  const { type, data, mimeType, uri, name, size, resource } = block;
  switch (type) {
    case 'image':
    case 'audio':
      return notShown([type, textOf(mimeType)], decodedBytes(data));
    case 'resource_link':
      return notShown(['resource', textOf(uri) ?? textOf(name), textOf(mimeType)], numberOf(size));
    case 'resource':
      return resourceText(resource);
    default:
      return plainText(block);
  }
}

/** Of a part with a text, whatever it is called. */
function plainText(block: Record<string, unknown>): string {
  const { type, text } = block;
  if (typeof text === 'string') return text;
  if (type !== 'text') return unknownText(textOf(type) ?? '', block);
  return text === null || text === undefined ? '' : jsonText(text);
}

export function resourceText(resource: unknown): string {
  if (typeof resource === 'string') return resource;
  if (!isRecord(resource)) return '[resource: not shown, because it cannot be read]';
  const { uri, mimeType, text, blob } = resource;
  const facts = ['resource', textOf(uri), textOf(mimeType)];
  if (typeof text === 'string') return `[${facts.filter(Boolean).join(' ')}]\n${text}`;
  return notShown(facts, decodedBytes(blob));
}

function unknownText(type: string, part: unknown): string {
  const json = jsonText(part);
  const of =
    type === '' ? 'a part without a type' : `a part of the type ${JSON.stringify(type.slice(0, 80))}`;
  if (json.length > UNKNOWN_CHARACTERS) return `[${of}, ${json.length} characters: not shown]`;
  return `[${of}] ${json}`;
}

function notShown(what: readonly (string | undefined)[], bytes: number | undefined): string {
  const size = bytes === undefined ? '' : `, ${bytes} bytes`;
  return `[${what.filter(Boolean).join(' ')}${size}: not shown]`;
}

function decodedBytes(base64: unknown): number | undefined {
  return typeof base64 === 'string' ? Buffer.byteLength(base64, 'base64') : undefined;
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
