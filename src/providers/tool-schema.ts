import { plainSchema } from './plain-schema.ts';

export type Schema = Readonly<Record<string, unknown>>;

/** A vendor's rules for the schemas of tools. They stand with its adapter. */
export interface ToolRules {
  /** The schema as it is sent; null: no call of this vendor's models could fit it. */
  shape: (schema: Schema) => Record<string, unknown> | null;
  /** Property names that the vendor accepts. Others are renamed, and renamed back in calls. */
  keys?: RegExp;
}

/** Names that every vendor accepts: Anthropic refuses the whole request for any other. */
export const COMMON_KEYS = /^[a-zA-Z0-9_.-]{1,64}$/;

/** For unknown servers: they may compile schemas to a grammar, or pass requests on to any vendor. */
export const PLAIN_TOOLS: ToolRules = {
  shape: (schema) => flatTop(typedChoices(plainSchema(schema))),
  keys: COMMON_KEYS,
};

const MAX_DEPTH = 64;
const MAPS = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'] as const;
const LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems'] as const;
const SINGLES = [
  'items',
  'additionalProperties',
  'additionalItems',
  'contains',
  'not',
  'if',
  'then',
  'else',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
] as const;

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schema with `change` applied to each part, innermost first. Parts that are too deep accept anything. */
export function mapSchema(schema: unknown, change: (part: Schema) => Schema, depth = 0): Schema {
  if (!isSchema(schema) || depth > MAX_DEPTH) return {};
  const part = (value: unknown) => (typeof value === 'boolean' ? value : mapSchema(value, change, depth + 1));
  const changed: Record<string, unknown> = { ...schema };
  for (const name of MAPS) {
    const map = schema[name];
    if (isSchema(map))
      changed[name] = Object.fromEntries(Object.entries(map).map(([key, value]) => [key, part(value)]));
  }
  for (const name of [...LISTS, 'items'] as const) {
    const list = schema[name];
    if (Array.isArray(list)) changed[name] = list.map(part);
  }
  for (const name of SINGLES) if (isSchema(schema[name])) changed[name] = part(schema[name]);
  return change(changed);
}

/**
 * Moves a type into the alternatives beside it, which means the same. Moonshot refuses the request otherwise: "when using
 * anyOf, type should be defined in anyOf items instead of the parent schema".
 */
function typedChoices(schema: Schema): Schema {
  return mapSchema(schema, (part) => {
    const { type, ...rest } = part;
    const choices = ['anyOf', 'oneOf'].filter((name) => Array.isArray(part[name]));
    if (type === undefined || choices.length === 0) return part;
    const typed = choices.map((name) => {
      const branches = part[name] as unknown[];
      return [
        name,
        branches.map((each) =>
          isSchema(each) && !('type' in each) && !('$ref' in each) ? { type, ...each } : each,
        ),
      ];
    });
    return { ...rest, ...(Object.fromEntries(typed) as Schema) };
  });
}

/** Keywords that vendors refuse beside the type `object` at the top. */
const REFUSED_AT_TOP = [
  'anyOf',
  'oneOf',
  'allOf',
  'not',
  'enum',
  'const',
  'if',
  'then',
  'else',
  '$ref',
] as const;
/** Most parts of a schema that are searched for the fields of its top. */
const MOST_PARTS = 256;
/**
 * Most characters that are compared where alternatives describe a property differently. Beyond them the first description counts.
 */
const MOST_COMPARED = 100_000;
const SHOWN_CHARACTERS = 1_000;

/**
 * The schema with a plain object at its top: it has the properties of all alternatives, and requires those that all
 * alternatives require. The description tells what the alternatives say, and the tool checks its arguments against its own
 * schema. Null: no object fits.
 */
export function flatTop(schema: Schema): Record<string, unknown> | null {
  const refused = REFUSED_AT_TOP.filter((name) => name in schema);
  const isObject = schema['type'] === 'object';
  if (refused.length === 0 && isObject && isSchema(schema['properties'])) return schema;
  const top = new Top(schema).merge(schema, 0);
  if (top === null) return null;
  const kept = Object.entries(schema).filter(([name]) => !refused.some((each) => each === name));
  const words = refused
    .filter((name) => name !== '$ref')
    .map((name) => `${name}: ${JSON.stringify(schema[name])}`);
  const { description } = schema;
  const said = typeof description === 'string' ? [description] : [];
  if (words.length > 0) said.push(`{${words.join(', ')}}`.slice(0, SHOWN_CHARACTERS).toWellFormed());
  return {
    ...Object.fromEntries(kept),
    type: 'object',
    properties: Object.fromEntries(top.properties),
    ...(top.required.size > 0 && { required: [...top.required] }),
    ...(said.length > 0 && { description: said.join('\n\n') }),
  };
}

interface Fields {
  properties: Map<string, unknown>;
  required: Set<string>;
}

/** Collects the properties of an object from the parts of its schema. Linear: each part counts against a limit. */
class Top {
  readonly #root: Schema;
  readonly #followed = new Set<string>();
  #parts = 0;
  #compared = 0;

  constructor(root: Schema) {
    this.#root = root;
  }

  /** Null if no object fits this part. */
  merge(part: unknown, depth: number): Fields | null {
    this.#parts += 1;
    if (part === false) return null;
    if (!isSchema(part) || depth > MAX_DEPTH || this.#parts > MOST_PARTS)
      return { properties: new Map(), required: new Set() };
    const { type } = part;
    if (type !== undefined && type !== 'object' && !(Array.isArray(type) && type.includes('object')))
      return null;
    const fields = ownFields(part);
    for (const each of this.#allOf(part)) {
      const more = this.merge(each, depth + 1);
      if (more === null) return null;
      this.#join(fields, more, more.required);
    }
    for (const choices of [part['anyOf'], part['oneOf']])
      if (Array.isArray(choices) && choices.length > 0 && !this.#choose(choices, fields, depth)) return null;
    return fields;
  }

  #allOf({ allOf, $ref }: Schema): unknown[] {
    const all = Array.isArray(allOf) ? (allOf as unknown[]) : [];
    if (typeof $ref !== 'string' || this.#followed.has($ref)) return all;
    this.#followed.add($ref);
    return [...all, targetOf(this.#root, $ref)];
  }

  /** Adds the fields of the alternatives. False if none of them fits an object. */
  #choose(choices: readonly unknown[], into: Fields, depth: number): boolean {
    const fitting = choices.map((each) => this.merge(each, depth + 1)).filter((each) => each !== null);
    const [first, ...others] = fitting;
    if (first === undefined) return false;
    const inAll = [...first.required].filter((field) => others.every((each) => each.required.has(field)));
    for (const each of fitting) this.#join(into, each, new Set());
    for (const field of inAll) into.required.add(field);
    return true;
  }

  #join(into: Fields, more: Fields, required: ReadonlySet<string>): void {
    for (const [name, value] of more.properties) {
      const known = into.properties.get(name);
      into.properties.set(name, known === undefined ? value : this.#either(known, value));
    }
    for (const name of required) into.required.add(name);
  }

  #either(known: unknown, value: unknown): unknown {
    if (known === value || this.#compared > MOST_COMPARED) return known;
    const texts = [JSON.stringify(known), JSON.stringify(value)];
    this.#compared += texts.join('').length;
    return texts[0] === texts[1] ? known : either(known, value);
  }
}

function ownFields({ properties, required }: Schema): Fields {
  const names = Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
  return {
    properties: new Map(isSchema(properties) ? Object.entries(properties) : []),
    required: new Set(names),
  };
}

/** One schema for a property that alternatives describe differently. */
function either(one: unknown, other: unknown): unknown {
  const values = [valuesOf(one), valuesOf(other)];
  if (
    isSchema(one) &&
    isSchema(other) &&
    values.every((each) => each !== null) &&
    one['type'] === other['type']
  ) {
    const { const: _, ...rest } = one;
    return { ...rest, enum: [...new Set(values.flat())] };
  }
  const known = isSchema(one) && Object.keys(one).join() === 'anyOf' ? (one['anyOf'] as unknown[]) : [one];
  const text = JSON.stringify(other);
  return known.some((each) => JSON.stringify(each) === text) ? one : { anyOf: [...known, other] };
}

function valuesOf(schema: unknown): unknown[] | null {
  if (!isSchema(schema)) return null;
  if ('const' in schema) return [schema['const']];
  return Array.isArray(schema['enum']) ? schema['enum'] : null;
}

/** The target of a reference within the schema; undefined if there is none. */
export function targetOf(root: Schema, ref: string): unknown {
  if (ref === '#') return root;
  if (!ref.startsWith('#/')) return undefined;
  let at: unknown = root;
  for (const step of ref.slice(2).split('/', MAX_DEPTH)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Schema)[name];
  }
  return at;
}

const TYPES: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];
const isNumber = (value: unknown) => typeof value === 'number';
const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 0;
const isText = (value: unknown) => typeof value === 'string';
const isFlag = (value: unknown) => typeof value === 'boolean';
const isPart = (value: unknown) => isSchema(value) || isFlag(value);
const isParts = (value: unknown) => Array.isArray(value) && value.length > 0;
const isList = (value: unknown) => Array.isArray(value);

function each(names: readonly string[], valid: (value: unknown) => boolean) {
  return Object.fromEntries(names.map((name) => [name, valid]));
}

/** The values that JSON Schema 2020-12 allows for its keywords. Vendors check them, and refuse the whole request over one tool. */
const VALID: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: (value) =>
    Array.isArray(value)
      ? value.length > 0 && value.every((each) => TYPES.includes(each))
      : TYPES.includes(value),
  enum: isParts,
  required: isList,
  ...each(
    ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependentRequired'],
    isSchema,
  ),
  ...each(['items', 'additionalProperties', 'contains', 'not', 'if', 'then', 'else'], isPart),
  ...each(['propertyNames', 'unevaluatedItems', 'unevaluatedProperties'], isPart),
  ...each(['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'], isCount),
  ...each(['minContains', 'maxContains'], isCount),
  prefixItems: isParts,
  anyOf: isParts,
  oneOf: isParts,
  allOf: isParts,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  multipleOf: (value) => isNumber(value) && (value as number) > 0,
  pattern: isText,
  format: isText,
  title: isText,
  description: isText,
  $comment: isText,
  $ref: isText,
  examples: isList,
  uniqueItems: isFlag,
  deprecated: isFlag,
  readOnly: isFlag,
  writeOnly: isFlag,
};
/** In draft 4 the bound is in `minimum`, and the second keyword says that the bound itself is excluded. */
const BOUNDS = [
  ['minimum', 'exclusiveMinimum'],
  ['maximum', 'exclusiveMaximum'],
] as const;

/** The schema for vendors that read all of it, with a plain object at its top, mended as current drafts require. */
export function wholeToolSchema(schema: Schema): Record<string, unknown> | null {
  return flatTop(mapSchema(schema, (part) => mended(part, schema)));
}

function mended(part: Schema, root: Schema): Schema {
  const made: Record<string, unknown> = { ...part };
  for (const [bound, excludes] of BOUNDS) {
    if (made[excludes] !== true || !isNumber(made[bound])) continue;
    made[excludes] = made[bound];
    delete made[bound];
  }
  const { required, $ref } = made;
  if (Array.isArray(required)) made['required'] = [...new Set(required.filter(isText))];
  if (typeof $ref === 'string' && targetOf(root, $ref) === undefined) delete made['$ref'];
  mendItems(made);
  for (const [name, value] of Object.entries(made))
    if (Object.hasOwn(VALID, name) && !VALID[name]?.(value)) delete made[name];
  return made;
}

/**
 * Older drafts describe a tuple by a list in `items`, and further items in `additionalItems`. Each part is moved, not copied:
 * copies would double with every level. OpenAI demands a schema in `items` of every array.
 */
function mendItems(made: Record<string, unknown>): void {
  const { items, additionalItems, type } = made;
  if (Array.isArray(items)) {
    made['prefixItems'] ??= items;
    made['items'] = isSchema(additionalItems) ? additionalItems : {};
    delete made['additionalItems'];
  }
  const isArray = type === 'array' || (Array.isArray(type) && type.includes('array'));
  if (isArray && !isPart(made['items'])) made['items'] = {};
}
