import * as z from 'zod';
import type { FakeHandler } from '../../packages/testing/src/fake-vendors.ts';

const answer = (status: number, error: object) => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ error }),
});

/** Recorded answers of llama.cpp's server (build 0c1e570 with `--jinja`, Qwen2.5-Coder-1.5B). */
export const LLAMA_CPP = {
  /** Sent while it loads its model. */
  loading: answer(503, { message: 'Loading model', type: 'unavailable_error', code: 503 }),
  contextSize: answer(400, {
    code: 400,
    message: 'request (9030 tokens) exceeds the available context size (8192 tokens), try increasing it',
    type: 'exceed_context_size_error',
    n_prompt_tokens: 9030,
    n_ctx: 8192,
  }),
  /** Sent for an item of `/v1/responses` without a type. */
  itemType: refusal("Cannot determine type of 'item'"),
};

/** Refused schemas of a property `x`, for tools and replies alike, with the reason of each refusal. */
export const REFUSED_SCHEMAS: Record<string, [schema: unknown, why: string]> = {
  'a tuple with nothing after it': [
    { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false },
    'at #/properties/x/items: schema must be an object',
  ],
  'a reference to the whole': [
    { type: 'array', items: { $ref: '#' } },
    'at #/properties/x/items: unsupported $ref #, only references into the same document are supported',
  ],
  'anything at all': [true, 'at #/properties/x: schema must be an object'],
  'nothing at all': [false, 'at #/properties/x: schema must be an object'],
  'a list of anything': [{ type: 'array', items: true }, 'at #/properties/x/items: schema must be an object'],
  'no choice': [{ enum: [] }, 'at #/properties/x: enum must be a non-empty array'],
  'no kind': [{ anyOf: [] }, 'at #/properties/x/anyOf: must not be empty'],
  'a type that is none': [{ type: 'any' }, 'at #/properties/x: unrecognized type any'],
  'a reference to elsewhere': [
    { $ref: 'https://example.com/a.json' },
    'at #/properties/x: unsupported $ref https://example.com/a.json, only references into the same document are supported',
  ],
  'a reference to nothing': [
    { $ref: '#/$defs/nope' },
    'at #/properties/x: cannot resolve $ref #/$defs/nope, $defs not found',
  ],
};

const NO_GRAMMAR = 'Failed to initialize samplers: failed to parse grammar';
const NO_NAME = '[json.exception.type_error.302] type must be string, but is object';

/** The same of whole schemas; recorded of build 7e4c0a9. */
export const REFUSED_WHOLES: Record<string, [schema: Schema, why: string]> = {
  'a definition that is itself': [
    { ...withX({ $ref: '#/$defs/A' }), $defs: { A: { $ref: '#/$defs/A' } } },
    NO_GRAMMAR,
  ],
  'definitions that are each other': [
    {
      ...withX({ $ref: '#/$defs/A' }),
      $defs: { A: { anyOf: [{ $ref: '#/$defs/B' }, { type: 'string' }] }, B: { $ref: '#/$defs/A' } },
    },
    NO_GRAMMAR,
  ],
  'a date': [withX(schemaOf(z.iso.date())), NO_GRAMMAR],
  'a date and time': [withX(schemaOf(z.iso.datetime())), NO_GRAMMAR],
  'an email': [withX(schemaOf(z.email())), NO_GRAMMAR],
  'a text of digits': [withX({ type: 'string', pattern: String.raw`^\d+$` }), NO_GRAMMAR],
  'a text of at most 2000 characters': [withX({ type: 'string', maxLength: 2000 }), NO_GRAMMAR],
  'a text that begins like this': [
    withX(schemaOf(z.string().startsWith('a/'))),
    "JSON schema conversion failed:\nPattern must start with '^' and end with '$'",
  ],
  'a field named as a reference': [
    withX({ type: 'object', properties: { $ref: { type: 'string' } } }),
    NO_NAME,
  ],
  'a default that holds a reference': [
    withX({ default: { $ref: '#/x' } }),
    'JSON schema conversion failed:\nError resolving ref #/x: x not in {"type":"object","properties":{"x":{"default":{"$ref":"#/x"}}},"required":["x"]}',
  ],
  'a fixed value that holds a reference': [
    withX({ const: { $ref: '#/x' } }),
    'JSON schema conversion failed:\nError resolving ref #/x: x not in {"type":"object","properties":{"x":{"const":{"$ref":"#/x"}}},"required":["x"]}',
  ],
};

/** A part of a schema, as zod writes it. */
function schemaOf(type: z.ZodType): Schema {
  const { $schema: _, ...schema } = z.toJSONSchema(type, { io: 'input' });
  return schema;
}

function withX(x: unknown): Schema {
  return { type: 'object', properties: { x }, required: ['x'] };
}

const PREFIX = 'Unable to generate parser for this template. Automatic parser generation failed: ';

function refusal(message: string) {
  return answer(400, { code: 400, message, type: 'invalid_request_error' });
}

type Schema = Record<string, unknown>;

/**
 * Refuses what llama.cpp refuses, with its messages: items without a type, and schemas that its grammars do not
 * support.
 */
export const likeLlamaCpp: FakeHandler = ({ body }) => {
  const { input, tools, response_format, text } = body as {
    input?: { type?: string }[];
    tools?: { function?: { parameters: Schema }; parameters?: Schema; input_schema?: Schema }[];
    response_format?: { json_schema?: { schema: Schema } };
    text?: { format?: { schema?: Schema } };
  };
  if (input?.some(({ type }) => type === undefined)) return { raw: LLAMA_CPP.itemType };
  const schemas = [
    ...(tools ?? []).map((tool) => tool.function?.parameters ?? tool.parameters ?? tool.input_schema),
    response_format?.json_schema?.schema,
    text?.format?.schema,
  ];
  for (const schema of schemas) {
    if (!schema) continue;
    const why = whyNot(schema, schema, '#');
    if (why) return { raw: refusal(`${PREFIX}JSON schema error ${why}`) };
    const reference = whyNoReferences(schema, schema);
    if (reference) return { raw: refusal(PREFIX + reference) };
    const pattern = patternsIn(schema).find((each) => !/^\^[^]*\$$/.test(each));
    if (pattern !== undefined)
      return {
        raw: refusal(`${PREFIX}JSON schema conversion failed:\nPattern must start with '^' and end with '$'`),
      };
    if (isLooped(schema) || isTooMuch(schema)) return { raw: refusal(NO_GRAMMAR) };
  }
  return { text: 'ok' };
};

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);

function whyNot(schema: unknown, root: Schema, at: string): string | null {
  if (!isObject(schema)) return `at ${at}: schema must be an object`;
  const { $ref, type, properties, items, anyOf, enum: choices } = schema;
  if (typeof $ref === 'string') return whyNoReference($ref, root, at);
  if (Array.isArray(choices) && choices.length === 0) return `at ${at}: enum must be a non-empty array`;
  if (typeof type === 'string' && !TYPES.has(type)) return `at ${at}: unrecognized type ${type}`;
  if (Array.isArray(anyOf) && anyOf.length === 0) return `at ${at}/anyOf: must not be empty`;
  const parts: [unknown, string][] = Object.entries(properties ?? {}).map(([name, each]) => [
    each,
    `${at}/properties/${name}`,
  ]);
  if (items !== undefined) parts.push([items, `${at}/items`]);
  for (const [index, each] of Array.isArray(anyOf) ? anyOf.entries() : [])
    parts.push([each, `${at}/anyOf/${index}`]);
  for (const [part, place] of parts) {
    const why = whyNot(part, root, place);
    if (why) return why;
  }
  return null;
}

function whyNoReference(ref: string, root: Schema, at: string): string | null {
  if (!ref.startsWith('#/'))
    return `at ${at}: unsupported $ref ${ref}, only references into the same document are supported`;
  let target: unknown = root;
  for (const part of ref.slice(2).split('/')) {
    if (!isObject(target) || !(part in target))
      return `at ${at}: cannot resolve $ref ${ref}, ${part} not found`;
    target = target[part];
  }
  return null;
}

/** Every `$ref` counts, also in values. */
function whyNoReferences(part: unknown, root: Schema): string | null {
  if (typeof part !== 'object' || part === null) return null;
  for (const [key, value] of Object.entries(part)) {
    if (key === '$ref' && typeof value !== 'string') return NO_NAME;
    const why = key === '$ref' ? whyUnresolved(value as string, root) : whyNoReferences(value, root);
    if (why) return why;
  }
  return null;
}

function whyUnresolved(ref: string, root: Schema): string | null {
  const [first = '', ...rest] = ref.replace('#/', '').split('/');
  if (!(first in root)) {
    return `JSON schema conversion failed:\nError resolving ref ${ref}: ${first} not in ${JSON.stringify(root)}`;
  }
  return rest.length === 1 ? null : `unexpected reference ${ref}`;
}

function patternsIn(part: unknown): string[] {
  if (typeof part !== 'object' || part === null) return [];
  return Object.entries(part).flatMap(([key, value]) =>
    key === 'pattern' && typeof value === 'string' ? [value] : patternsIn(value),
  );
}

/** Escapes that its grammars do not have, and long repetitions. */
function isTooMuch(schema: Schema): boolean {
  if (patternsIn(schema).some((pattern) => /\\[dw-]/.test(pattern))) return true;
  return /"m(?:in|ax)Length":\d{4}/.test(JSON.stringify(schema));
}

/** Whether a definition stands for itself. Grammars are made of those that are referred to. */
function isLooped({ $defs = {} }: { $defs?: Record<string, Schema> }): boolean {
  const leads = (name: string, seen: readonly string[]): boolean => {
    if (seen.includes(name)) return true;
    const { $ref, anyOf = [] } = ($defs[name] ?? {}) as { $ref?: string; anyOf?: { $ref?: string }[] };
    return [{ $ref }, ...anyOf].some(
      (each) => each.$ref !== undefined && leads(each.$ref.replace('#/$defs/', ''), [...seen, name]),
    );
  };
  return Object.keys($defs).some((name) => leads(name, []));
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
