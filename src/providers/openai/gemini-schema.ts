import { plainSchema } from '../plain-schema.ts';
import { flatTop, isSchema, type Schema, targetOf, type ToolRules } from '../tool-schema.ts';

/**
 * Gemini reads schemas as its own `Schema`, https://ai.google.dev/api/caching#Schema, also behind chat completions. It refuses a
 * request for a list of types ("Proto field is not repeating, cannot start list"), for unknown keywords ("Unknown name"), for an
 * array without `items`, for a required property that is not there, and for values of `enum` that are not texts.
 */
export const GEMINI_TOOLS: ToolRules = {
  shape(schema) {
    const flat = flatTop(plainSchema(schema));
    return flat && new GeminiSchema(flat).part(flat, 0);
  },
  keys: /^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$/,
};

const MAX_DEPTH = 32;
/** References are replaced by what they name; a schema can name itself without end. */
const MOST_PARTS = 2_000;
const NULL: unknown = 'null';
const ANYTHING = ['string', 'number', 'boolean', 'object'].map((type) => ({ type }));

class GeminiSchema {
  readonly #root: Schema;
  #parts = 0;

  constructor(root: Schema) {
    this.#root = root;
  }

  part(given: unknown, depth: number): Record<string, unknown> {
    this.#parts += 1;
    if (depth > MAX_DEPTH || this.#parts > MOST_PARTS) return { type: 'string' };
    const schema = this.#resolved(given);
    const { description } = schema;
    const said = typeof description === 'string' ? { description } : {};
    const choices = choicesOf(schema);
    const isNullable = choices.some(isNull);
    const left = choices.filter((each) => !isNull(each));
    const nullable = isNullable ? { nullable: true } : {};
    if (left.length > 1) {
      const anyOf = left.map((each) => this.part(each, depth + 1));
      // Beside alternatives there may be nothing else.
      return { anyOf: anyOf.map((each, index) => (index === 0 ? { ...said, ...nullable, ...each } : each)) };
    }
    const only = isSchema(left[0]) ? { ...schema, ...left[0] } : schema;
    return { ...this.#typed(only, depth), ...said, ...nullable };
  }

  /** The parts of a schema with one type. */
  #typed(schema: Schema, depth: number): Record<string, unknown> {
    const texts = textsOf(schema);
    if (texts) return { type: 'string', enum: texts };
    const type = typeOf(schema);
    if (type === null) return { anyOf: ANYTHING };
    if (type === 'array') return { type, items: this.part(schema['items'] ?? { type: 'string' }, depth + 1) };
    if (type !== 'object') return { type };
    const { properties, required } = schema;
    const entries = Object.entries(isSchema(properties) ? properties : {});
    if (entries.length === 0) return { type };
    const shown = Object.fromEntries(entries.map(([name, each]) => [name, this.part(each, depth + 1)]));
    const known = Array.isArray(required)
      ? required.filter((name) => typeof name === 'string' && Object.hasOwn(shown, name))
      : [];
    return { type, properties: shown, ...(known.length > 0 && { required: known }) };
  }

  /** Follows references, and joins what must hold together. */
  #resolved(given: unknown): Schema {
    let schema: Schema = isSchema(given) ? given : {};
    for (let step = 0; step < MAX_DEPTH && typeof schema['$ref'] === 'string'; step += 1) {
      const { $ref, ...rest } = schema;
      const target = targetOf(this.#root, $ref);
      schema = { ...(isSchema(target) ? target : {}), ...rest };
    }
    const { allOf } = schema;
    if (!Array.isArray(allOf)) return schema;
    const { allOf: _, ...rest } = schema;
    return {
      ...rest,
      ...flatTop({ ...rest, allOf }),
      ...(allOf.length === 1 && isSchema(allOf[0]) && this.#resolved(allOf[0])),
    };
  }
}

/** Alternatives of types, values and schemas. */
function choicesOf(schema: Schema): unknown[] {
  const { type, anyOf, oneOf } = schema;
  const choices = [anyOf, oneOf].flatMap((each) => (Array.isArray(each) ? (each as unknown[]) : []));
  if (choices.length > 0) return choices;
  if (!Array.isArray(type)) return [];
  const { type: _, description: __, ...rest } = schema;
  return type.map((each: unknown) => (each === NULL ? { type: each } : { ...rest, type: each }));
}

function isNull(schema: unknown): boolean {
  return isSchema(schema) && (schema['type'] === NULL || ('const' in schema && schema['const'] === null));
}

/** The values, if all of them are texts. */
function textsOf({ enum: values, const: value }: Schema): string[] | null {
  const all = Array.isArray(values) ? values.filter((each) => each !== null) : [value];
  return all.length > 0 && all.every((each) => typeof each === 'string' && each !== '')
    ? (all as string[])
    : null;
}

function typeOf({ type, properties, items, enum: values, const: value }: Schema): string | null {
  if (typeof type === 'string' && type !== NULL) return type;
  if (isSchema(properties)) return 'object';
  if (items !== undefined) return 'array';
  const [first] = Array.isArray(values) ? (values as unknown[]) : [value];
  return typeof first === 'number' || typeof first === 'boolean' ? typeof first : null;
}
