import type { PromptMessage } from '../events/index.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Deeper parts accept anything: a schema from elsewhere may be deep. */
const MAX_DEPTH = 64;
/** Maximum length of the omitted keywords in a description. */
const DESCRIPTION_CHARACTERS = 200;

const KEPT = new Set(['const', 'required', 'title', 'description', 'default', 'examples']);
const SCHEMA = new Set(['items', 'additionalProperties']);
const SCHEMA_LISTS = new Set(['anyOf', 'oneOf', 'allOf']);
const SCHEMA_MAPS = new Set(['properties', '$defs', 'definitions']);
/** Keywords that constrain nothing. */
const SILENT = new Set(['$schema', '$id', '$anchor', '$comment']);
const SAFE_BOUNDS = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);

/**
 * A JSON schema for servers that compile it to a grammar and refuse the whole request for unsupported keywords.
 * llama.cpp refuses `$ref: "#"`, dangling references, unknown types, empty lists of types and boolean schemas; older
 * versions also refuse `\d` in a pattern. Only the structure is kept. Other keywords move into the description, and
 * the answer is checked against them afterwards. Equal schemas give equal bytes, as prompt caches need.
 */
export function plainSchema(schema: Schema): Record<string, unknown> {
  return new PlainSchema(schema).whole();
}

class PlainSchema {
  readonly #schema: Schema;
  /** The targets of references. */
  readonly #targets: ReadonlySet<string>;
  /** Path of the schema itself, if it refers to itself. */
  readonly #self: string;
  #isRecursive = false;

  constructor(schema: Schema) {
    this.#schema = schema;
    this.#targets = new Set(['$defs', 'definitions'].flatMap((map) => namesIn(map, schema[map])));
    let self = 'whole';
    while (this.#targets.has(`#/$defs/${self}`)) self += '_';
    this.#self = self;
  }

  whole(): Record<string, unknown> {
    const plain = this.#plain(this.#schema, 0);
    if (!this.#isRecursive) return plain;
    const { $defs, ...itself } = plain;
    return { ...itself, $defs: { ...($defs as Schema | undefined), [this.#self]: itself } };
  }

  #plain(schema: unknown, depth: number): Record<string, unknown> {
    if (!isSchema(schema) || depth > MAX_DEPTH) return {};
    const kept: [string, unknown][] = [];
    const dropped: string[] = [];
    for (const [key, value] of Object.entries(schema)) {
      const next = this.#value(key, value, depth);
      if (next !== undefined) kept.push([key, next]);
      else if (isDescribed(key, value)) dropped.push(`${key}: ${described(key, value)}`);
    }
    const result = Object.fromEntries(kept);
    if (Array.isArray(schema['prefixItems'])) result['items'] = this.#items(schema, depth);
    if (dropped.length === 0) return result;
    const { description } = schema;
    const words = `{${dropped.join(', ')}}`;
    return { ...result, description: typeof description === 'string' ? `${description}\n\n${words}` : words };
  }

  /** Undefined if the keyword is omitted. */
  #value(key: string, value: unknown, depth: number): unknown {
    if (key === 'type') return isType(value) ? value : undefined;
    if (key === 'enum') return isFilled(value) ? value : undefined;
    if (KEPT.has(key)) return value;
    if (key === '$ref') return this.#reference(value);
    if (SCHEMA.has(key)) {
      if (key === 'additionalProperties' && typeof value === 'boolean') return value;
      return Array.isArray(value) ? undefined : this.#plain(value, depth + 1);
    }
    if (SCHEMA_LISTS.has(key))
      return isFilled(value) ? value.map((each) => this.#plain(each, depth + 1)) : undefined;
    if (SCHEMA_MAPS.has(key) && isSchema(value))
      return Object.fromEntries(
        Object.entries(value).map(([name, each]) => [name, this.#plain(each, depth + 1)]),
      );
    return undefined;
  }

  #reference(ref: unknown): string | undefined {
    if (ref === '#') {
      this.#isRecursive = true;
      return `#/$defs/${this.#self}`;
    }
    return typeof ref === 'string' && this.#targets.has(ref) ? ref : undefined;
  }

  /** A tuple becomes a list whose items may each match any of its schemas. */
  #items({ prefixItems, items }: Schema, depth: number): Record<string, unknown> {
    const kinds = [...(prefixItems as unknown[]), ...(isSchema(items) ? [items] : [])];
    return kinds.length === 0 ? {} : { anyOf: kinds.map((each) => this.#plain(each, depth + 1)) };
  }
}

function namesIn(map: string, definitions: unknown): string[] {
  return isSchema(definitions) ? Object.keys(definitions).map((name) => `#/${map}/${name}`) : [];
}

function isType(type: unknown): boolean {
  if (Array.isArray(type)) return isFilled(type) && type.every((each) => TYPES.has(each as string));
  return TYPES.has(type as string);
}

function isFilled(list: unknown): list is unknown[] {
  return Array.isArray(list) && list.length > 0;
}

function isDescribed(key: string, value: unknown): boolean {
  if (SILENT.has(key)) return false;
  return !(key in SAFE_BOUNDS) || SAFE_BOUNDS[key as keyof typeof SAFE_BOUNDS] !== value;
}

function described(key: string, value: unknown): string {
  if (key === 'prefixItems' && Array.isArray(value)) return `${value.length}, in this order`;
  if (typeof value === 'object' && value !== null) return 'not shown';
  return (JSON.stringify(value) ?? 'null').slice(0, DESCRIPTION_CHARACTERS).toWellFormed();
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Appends the schema of the reply to the system message, for vendors that take it in no other way. Every request of
 * an agent gets the same text.
 */
export function appendSchema(messages: readonly PromptMessage[], schema: object): PromptMessage[] {
  const words = `Answer with a JSON object and nothing else. It must fit this JSON schema:\n${JSON.stringify(schema)}`;
  const [first, ...rest] = messages;
  if (first?.role !== 'system') return [{ role: 'system', content: words, seqs: [] }, ...messages];
  return [{ ...first, content: `${first.content}\n\n${words}` }, ...rest];
}
