import { isDeeper, isRecord, textOf } from './results.ts';

/** A tool as its server lists it, in the form that models are shown. */
export interface OfferedTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  idempotent: boolean;
  /** It answers MCP tasks only, which Troupe does not create: every call would fail. */
  needsTask: boolean;
}

/** The depth that all JSON readers of Troupe accept. */
const MAX_DEPTH = 64;
const MAX_NAME_LENGTH = 256;
const MAX_DESCRIPTION_LENGTH = 32_768;
const MAX_SCHEMA_LENGTH = 262_144;

/** One item of a list of tools; or why no agent can be offered it. */
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

/** The schema of the arguments, which are an object; or why it is none. Null, `[]` and nothing at all mean no arguments. */
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

/** A schema without the keywords that are null. PHP writes an empty object as `[]`. */
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
