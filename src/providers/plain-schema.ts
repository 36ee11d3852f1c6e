import type { PromptMessage } from '../events/index.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Deeper parts accept anything: a schema from outside may be deep. */
const MAX_DEPTH = 64;
/** Longest text of an omitted keyword in a description. */
const DESCRIPTION_CHARACTERS = 200;

const KEPT = new Set(['const', 'required', 'title', 'description', 'default', 'examples']);
const SCHEMA = new Set(['items', 'additionalProperties']);
const SCHEMA_LISTS = new Set(['anyOf', 'oneOf', 'allOf']);
const SCHEMA_MAPS = new Set(['properties', '$defs', 'definitions']);
/** The reference to the schema itself. */
const WHOLE = '#';
/** llama.cpp reads every `$ref` as a reference, even as the name of a property and within values. */
const REF = '$ref';
/** Keywords that constrain nothing. */
const SILENT = new Set(['$schema', '$id', '$anchor', '$comment']);
const SAFE_BOUNDS = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);

/**
 * A JSON schema for servers that compile it to a grammar and refuse the whole request over an unsupported keyword. llama.cpp
 * refuses `$ref: "#"`, dangling references, definitions that consist of themselves, unknown types, empty lists of types and
 * boolean schemas; older versions also refuse `\d` in a pattern. Only the structure is kept. Other keywords move into the
 * description, and the answer is checked against them afterwards. Equal schemas give equal bytes, which prompt caches need.
 */
export function plainSchema(schema: Schema): Record<string, unknown> {
  return new PlainSchema(schema).whole();
}

/** `whole`: unchanged. `plain`: for servers whose grammars are unknown, see `plainSchema`. */
export type SchemaForm = 'plain' | 'whole';

/** The schema as it is sent. */
export function shownSchema(schema: Schema, form: SchemaForm = 'plain'): Record<string, unknown> {
  return form === 'whole' ? schema : plainSchema(schema);
}

class PlainSchema {
  readonly #schema: Schema;
  /** Paths that references may name. */
  readonly #targets: ReadonlySet<string>;
  /** Path that stands for the schema itself, if it refers to itself. */
  readonly #self: string;
  /** Definitions that consist of themselves. */
  readonly #loops: ReadonlySet<string>;
  #isRecursive = false;

  constructor(schema: Schema) {
    this.#schema = schema;
    const definitions = new Map(['$defs', 'definitions'].flatMap((map) => definitionsIn(map, schema[map])));
    this.#targets = new Set(definitions.keys());
    this.#loops = loopsIn(definitions.set(WHOLE, schema), MAX_DEPTH);
    let self = 'whole';
    while (this.#targets.has(`#/$defs/${self}`)) self += '_';
    this.#self = self;
  }

  whole(): Record<string, unknown> {
    const plain = this.#plain(this.#schema, 0, WHOLE);
    if (!this.#isRecursive) return plain;
    const { $defs, ...itself } = plain;
    return { ...itself, $defs: { ...($defs as Schema | undefined), [this.#self]: itself } };
  }

  /** `of`: path of the definition whose values this schema describes; undefined inside a property or an item. */
  #plain(schema: unknown, depth: number, of?: string): Record<string, unknown> {
    if (!isSchema(schema) || depth > MAX_DEPTH) return {};
    const kept: [string, unknown][] = [];
    const dropped: string[] = [];
    for (const [key, value] of Object.entries(schema)) {
      const next = this.#value(key, value, depth, of);
      if (next !== undefined) kept.push([key, next]);
      else if (isDescribed(key, value, schema)) dropped.push(`${key}: ${described(key, value)}`);
    }
    const result = Object.fromEntries(kept);
    if (Array.isArray(schema['prefixItems'])) result['items'] = this.#items(schema, depth);
    if (isSchema(schema['properties']) && REF in schema['properties']) {
      // The omitted property stays allowed.
      result['additionalProperties'] = true;
      dropped.push(`properties: also ${REF}`);
    }
    if (dropped.length === 0) return result;
    const { description } = schema;
    const words = `{${dropped.join(', ')}}`;
    return { ...result, description: typeof description === 'string' ? `${description} ${words}` : words };
  }

  /** Undefined if the keyword is omitted. */
  #value(key: string, value: unknown, depth: number, of?: string): unknown {
    if (key === REF) return this.#reference(value, of);
    if (KEPT.has(key) || key === 'type' || key === 'enum') return isSendable(key, value) ? value : undefined;
    if (SCHEMA.has(key)) {
      if (key === 'additionalProperties' && typeof value === 'boolean') return value;
      return Array.isArray(value) ? undefined : this.#plain(value, depth + 1);
    }
    if (SCHEMA_LISTS.has(key))
      return isFilled(value) ? value.map((each) => this.#plain(each, depth + 1, of)) : undefined;
    if (SCHEMA_MAPS.has(key) && isSchema(value)) return this.#map(key, value, depth);
    return undefined;
  }

  #map(key: string, schemas: Schema, depth: number): Record<string, unknown> {
    const named = Object.entries(schemas).filter(([name]) => name !== REF);
    return Object.fromEntries(
      named.map(([name, each]) => {
        const path = pathOf(key, name);
        const of = depth === 0 && this.#targets.has(path) ? path : undefined;
        return [name, this.#plain(each, depth + 1, of)];
      }),
    );
  }

  #reference(ref: unknown, of?: string): string | undefined {
    if (typeof ref !== 'string') return undefined;
    if (of !== undefined && this.#loops.has(of) && this.#loops.has(ref)) return undefined;
    if (ref === WHOLE) {
      this.#isRecursive = true;
      return `#/$defs/${this.#self}`;
    }
    return this.#targets.has(ref) ? ref : undefined;
  }

  /** A tuple becomes a list whose items may each match any of its schemas. */
  #items({ prefixItems, items }: Schema, depth: number): Record<string, unknown> {
    const kinds = [...(prefixItems as unknown[]), ...(isSchema(items) ? [items] : [])];
    return kinds.length === 0 ? {} : { anyOf: kinds.map((each) => this.#plain(each, depth + 1)) };
  }
}

function pathOf(map: string, name: string): string {
  return `#/${map}/${name}`;
}

/** The definitions that a reference can name. A name with `/`, `~` or `%` is left out: it would have to be escaped. */
function definitionsIn(map: string, definitions: unknown): [string, unknown][] {
  if (!isSchema(definitions)) return [];
  const named = Object.entries(definitions).filter(([name]) => name !== REF && !/[/~%]/.test(name));
  return named.map(([name, schema]) => [pathOf(map, name), schema]);
}

function isSendable(key: string, value: unknown): boolean {
  if (key === 'type') return isType(value);
  if (key === 'enum' && !isFilled(value)) return false;
  if (key === 'required' && !Array.isArray(value)) return false;
  return typeof value !== 'object' || !JSON.stringify(value).includes(`"${REF}"`);
}

function isType(type: unknown): boolean {
  if (Array.isArray(type)) return isFilled(type) && type.every((each) => TYPES.has(each as string));
  return TYPES.has(type as string);
}

function isFilled(list: unknown): list is unknown[] {
  return Array.isArray(list) && list.length > 0;
}

/** Shorter limits are described. A model keeps to longer ones by itself, and the tool checks its arguments anyway. */
const LEAST_LONG = 1_000;

function isDescribed(key: string, value: unknown, schema: Schema): boolean {
  if (SILENT.has(key) || (key === 'pattern' && 'format' in schema)) return false;
  if (key === 'minLength' || key === 'minItems') return !(typeof value === 'number' && value <= 1);
  if (key === 'maxLength' || key === 'maxItems') return !(typeof value === 'number' && value >= LEAST_LONG);
  if (key === 'exclusiveMinimum') return value !== 0;
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
 * Appends the reply schema to the system message, for vendors that accept it in no other way. Every request of an agent gets
 * the same text.
 */
export function appendSchema(messages: readonly PromptMessage[], schema: object): PromptMessage[] {
  const words = `Answer with a JSON object and nothing else. It must fit this JSON schema:\n${JSON.stringify(schema)}`;
  const [first, ...rest] = messages;
  if (first?.role !== 'system') return [{ role: 'system', content: words, seqs: [] }, ...messages];
  return [{ ...first, content: `${first.content}\n\n${words}` }, ...rest];
}

const ALTERNATIVES = ['anyOf', 'oneOf', 'allOf'] as const;

/**
 * The definitions that consist of themselves: their references lead back to them without a list or an object in between. No
 * value fits such a definition, and a grammar made of it never ends. Definitions between two such loops count, too. Linear in
 * the size of the schemas.
 */
function loopsIn(definitions: ReadonlyMap<string, unknown>, maxDepth: number): ReadonlySet<string> {
  const edges: Edge[] = [];
  for (const [from, schema] of definitions) {
    for (const to of bareReferences(schema, maxDepth)) if (definitions.has(to)) edges.push([from, to]);
  }
  const backwards = edges.map(([from, to]): Edge => [to, from]);
  const leading = withoutEnds(new Set(definitions.keys()), edges);
  return withoutEnds(leading, backwards);
}

type Edge = readonly [from: string, to: string];

/** The names from which the edges lead on without end. */
function withoutEnds(names: ReadonlySet<string>, edges: readonly Edge[]): ReadonlySet<string> {
  const left = new Set(names);
  const outgoing = new Map<string, number>();
  const leadingTo = new Map<string, string[]>();
  for (const [from, to] of edges) {
    if (!names.has(from) || !names.has(to)) continue;
    outgoing.set(from, (outgoing.get(from) ?? 0) + 1);
    const sources = leadingTo.get(to) ?? [];
    sources.push(from);
    leadingTo.set(to, sources);
  }
  const ends = [...names].filter((name) => !outgoing.has(name));
  for (let name = ends.pop(); name !== undefined; name = ends.pop()) {
    left.delete(name);
    for (const source of leadingTo.get(name) ?? []) {
      const more = (outgoing.get(source) ?? 0) - 1;
      outgoing.set(source, more);
      if (more === 0) ends.push(source);
    }
  }
  return left;
}

/** References that a value of the schema must or may itself fit, not one of its parts. */
function* bareReferences(schema: unknown, depth: number): Generator<string> {
  if (typeof schema !== 'object' || schema === null || depth < 0) return;
  const { $ref } = schema as Schema;
  if (typeof $ref === 'string') yield $ref;
  for (const keyword of ALTERNATIVES) {
    const each = (schema as Schema)[keyword];
    if (Array.isArray(each)) for (const one of each) yield* bareReferences(one, depth - 1);
  }
}
