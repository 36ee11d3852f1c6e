import { below, pick, type Random } from '../sim/random.ts';

/** The subset of JSON Schema that zod generates. */
export interface JsonSchema {
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly JsonSchema[];
  oneOf?: readonly JsonSchema[];
  allOf?: readonly JsonSchema[];
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  properties?: Record<string, JsonSchema>;
  required?: readonly string[];
  additionalProperties?: JsonSchema | boolean;
  propertyNames?: JsonSchema;
  items?: JsonSchema;
  minItems?: number;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
  pattern?: string;
  default?: unknown;
}

/** Words that make up ids, hashes, media types and the like; the first that matches a pattern is used. */
const WORDS = [
  'hello there, all of you',
  'echo',
  'c1',
  'a'.repeat(64),
  'image/png',
  'text/plain',
  'step-1',
  '2026-01-01',
  'c1:echo:1',
];

/** A value that the schema accepts. Each optional property is present in half of the samples. */
export function sampleOf(random: Random, schema: JsonSchema, root: JsonSchema = schema): unknown {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    return sampleOf(random, root.$defs?.[name] ?? {}, root);
  }
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return pick(random, schema.enum);
  const either = schema.anyOf ?? schema.oneOf;
  if (either) return sampleOf(random, pick(random, either), root);
  switch (schema.type) {
    case 'object':
      return objectOf(random, schema, root);
    case 'array':
      return Array.from({ length: Math.max(schema.minItems ?? 0, below(random, 3)) }, () =>
        sampleOf(random, schema.items ?? {}, root),
      );
    case 'string':
      return textOf(random, schema);
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 0, (schema.exclusiveMinimum ?? -1) + 1) + below(random, 3);
    case 'boolean':
      return random() < 0.5;
    case 'null':
      return null;
    case undefined:
      return pick<unknown>(random, [{ any: 'thing' }, 'thing', 1, null, [1, 2]]);
  }
}

function objectOf(random: Random, schema: JsonSchema, root: JsonSchema): Record<string, unknown> {
  const { properties = {}, required = [], additionalProperties } = schema;
  const entries: [string, unknown][] = [];
  for (const [key, each] of Object.entries(properties)) {
    if (required.includes(key) || random() < 0.5) entries.push([key, sampleOf(random, each, root)]);
  }
  if (typeof additionalProperties === 'object' && Object.keys(additionalProperties).length > 0) {
    entries.push([
      String(textOf(random, schema.propertyNames ?? {})),
      sampleOf(random, additionalProperties, root),
    ]);
  }
  return Object.fromEntries(entries);
}

function textOf(random: Random, { pattern }: JsonSchema): string {
  if (pattern === undefined) return pick(random, WORDS);
  const shape = new RegExp(pattern, 'u');
  return WORDS.find((word) => shape.test(word)) ?? 'x';
}
