import * as z from 'zod';

/** Accepts every object, because Troupe checks results itself. */
export const AnyResult = z.looseObject({});

/** Most levels of nesting in a message. `JSON.stringify` is recursive, and a deeper value would overflow the stack. */
const MAX_LEVELS = 200;

export function isTooDeep(value: unknown): boolean {
  return isDeeper(value, MAX_LEVELS);
}

/** Not recursive: a deep value would overflow the stack. */
function isDeeper(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= levels; depth += 1) {
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []));
    if (level.length === 0) return false;
  }
  return true;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The fields that are present: many servers write null for absent ones. */
export function withoutNulls(given: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The items of a list. Some servers send null for an empty list, and a single item without a list around it. */
export function itemsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === null || value === undefined ? [] : [value];
}

/** Where a list continues; undefined at its end, which servers also mark with an empty text or null. */
export function cursorOf(value: unknown): string | undefined {
  return typeof value === 'number' ? String(value) : textOf(value);
}

/** JSON with the digits of its integers, or a note for a value that is nested too deeply. */
function jsonText(value: unknown): string {
  return isTooDeep(value)
    ? `[not shown: it has more than ${MAX_LEVELS} levels]`
    : (JSON.stringify(value) ?? '');
}

const MAX_PARTS = 1_000;
/** Most characters of a part that the protocol does not know. */
const UNKNOWN_CHARACTERS = 2_000;

/** A result as the model sees it. The tool has run, so all parts are read: text whole, anything else as a line that names it. */
export function resultText(result: unknown): string {
  if (!isRecord(result)) return typeof result === 'string' ? result : result === null ? '' : jsonText(result);
  const { content, structuredContent = null, isError: _, _meta, resultType: __, ...more } = result;
  const lines = blocksText(content);
  // Servers repeat structured content as text. Without that text, the structured content is the whole result.
  const hasText = itemsOf(content).some(
    (part) => typeof part === 'string' || Boolean(textOf(Object(part)['text'])),
  );
  if (!hasText && structuredContent !== null) lines.unshift(jsonText(structuredContent));
  const isOther = content === undefined && structuredContent === null && Object.keys(more).length > 0;
  if (isOther) lines.push(jsonText(more));
  return lines.filter((line) => line !== '').join('\n');
}

/** The texts of the parts. Parts beyond the limit are only counted. */
export function blocksText(content: unknown): string[] {
  const parts = itemsOf(content);
  const left = parts.length - MAX_PARTS;
  const lines = parts.slice(0, MAX_PARTS).map(blockText);
  return left > 0 ? [...lines, `[${left} more parts: not shown]`] : lines;
}

function blockText(block: unknown): string {
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

/** The text of a part that has one, whatever its type. */
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

/** A tool as its server lists it, in the form in which models see it. */
export interface OfferedTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  idempotent: boolean;
  /** It answers only through MCP tasks, which Troupe does not create: every call would fail. */
  needsTask: boolean;
}

/** Most levels of nesting that all JSON readers of Troupe accept. */
const MAX_DEPTH = 64;
const MAX_NAME_LENGTH = 256;
const MAX_DESCRIPTION_LENGTH = 32_768;
const MAX_SCHEMA_LENGTH = 262_144;

/** One item of a list of tools, or the reason why no agent can be offered it. */
export function readTool(given: unknown): OfferedTool | { name: string; why: string } {
  if (!isRecord(given)) return { name: '', why: 'it is no object' };
  const { title, annotations, execution } = given;
  const name = textOf(given['name']) ?? '';
  const hints = isRecord(annotations) ? annotations : {};
  const description = (
    textOf(given['description']) ??
    textOf(title) ??
    textOf(hints['title']) ??
    ''
  ).toWellFormed();
  const parameters = readParameters(given['inputSchema']);
  const why = typeof parameters === 'string' ? parameters : tooLarge(name, { description, parameters });
  if (typeof parameters === 'string' || why !== null) return { name, why: why ?? '' };
  return {
    name,
    description,
    parameters,
    idempotent: hints['idempotentHint'] === true || hints['readOnlyHint'] === true,
    needsTask: isRecord(execution) && execution['taskSupport'] === 'required',
  };
}

function tooLarge(
  name: string,
  { description, parameters }: Pick<OfferedTool, 'description' | 'parameters'>,
): string | null {
  if (name === '') return 'it has no name';
  if (name.length > MAX_NAME_LENGTH)
    return `its name has ${name.length} characters; the limit is ${MAX_NAME_LENGTH}`;
  if (description.length > MAX_DESCRIPTION_LENGTH)
    return `its description has ${description.length} characters; the limit is ${MAX_DESCRIPTION_LENGTH}`;
  const { length } = JSON.stringify(parameters);
  return length > MAX_SCHEMA_LENGTH
    ? `its schema has ${length} characters; the limit is ${MAX_SCHEMA_LENGTH}`
    : null;
}

/**
 * The schema of the arguments, which are an object, or the reason why it is invalid. Null, `[]` and a missing schema mean no
 * arguments.
 */
function readParameters(given: unknown): Record<string, unknown> | string {
  if (isDeeper(given, MAX_DEPTH)) return `its schema has more than ${MAX_DEPTH} levels`;
  const isNone =
    given === null || given === undefined || given === true || (Array.isArray(given) && given.length === 0);
  if (!isNone && !isRecord(given)) return 'its schema is no object';
  const { $schema: _, ...schema } = isNone ? {} : (cleanSchema(given) as Record<string, unknown>);
  const { type = 'object' } = schema;
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  if (!types.includes('object')) return `its arguments are of the type ${JSON.stringify(type).slice(0, 80)}`;
  // Some vendors refuse a schema without `properties`.
  return { properties: {}, ...schema, type: 'object' };
}

/** Keywords whose value may be null. */
const VALUES = new Set(['default', 'const', 'enum', 'example', 'examples']);
/** Keywords that hold schemas by name. */
const NAMED = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);

/** A schema without the keywords that are null. An empty list becomes an empty object, which PHP writes as `[]`. */
function cleanSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(cleanSchema);
  if (!isRecord(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => value !== null || VALUES.has(key))
      .map(([key, value]) => [
        key,
        VALUES.has(key) ? value : NAMED.has(key) ? cleanNamed(value) : cleanSchema(value),
      ]),
  );
}

function cleanNamed(schemas: unknown): unknown {
  if (Array.isArray(schemas) && schemas.length === 0) return {};
  if (!isRecord(schemas)) return schemas;
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, cleanSchema(schema ?? {})]),
  );
}
