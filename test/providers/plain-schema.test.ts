import { expect, test } from 'vitest';
import * as z from 'zod';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { plainSchema } from '../../src/providers/plain-schema.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { collectEvents, sampleRequest } from '../../packages/testing/src/provider-conformance.ts';
import {
  startFakeOpenAi,
  startFakeOpenAiResponses,
  type FakeHandler,
} from '../../packages/testing/src/fake-vendors.ts';
import { remindTool } from '../../src/tools/builtin/conversation.ts';

const KINDS: Record<string, z.ZodType> = {
  'an email': z.object({ x: z.email() }),
  'a date': z.object({ x: z.iso.date() }),
  'a pattern with \\d': z.object({ x: z.string().regex(/^\d+$/) }),
  'a beginning': z.object({ x: z.string().startsWith('a/') }),
  'a tuple': z.object({ x: z.tuple([z.string(), z.number()]) }),
  'a longest text': z.object({ x: z.string().max(2000) }),
};
const schemaOf = (type: z.ZodType): Record<string, unknown> =>
  z.toJSONSchema(type, { io: 'input' }) as Record<string, unknown>;
const SCHEMAS: Record<string, Record<string, unknown>> = {
  'the built-in remind tool': remindTool.parameters,
  ...Object.fromEntries(Object.entries(KINDS).map(([kind, type]) => [kind, schemaOf(type)])),
};

/** Keywords that make some servers with schema grammars refuse the request. */
const REFUSED = /"(?:pattern|format|prefixItems|m(?:in|ax)(?:Length|Items|imum)|exclusiveM\w+|multipleOf)":/;
const refuse: FakeHandler = ({ body }) => {
  const { tools, response_format, text } = body as Record<string, unknown>;
  const { format } = (text ?? {}) as { format?: { schema: unknown } };
  if (!REFUSED.test(JSON.stringify([tools, response_format, format?.schema]))) return { text: 'ok' };
  return { error: { code: 'provider_invalid_request', message: 'failed to parse grammar' } };
};

type Start = typeof startFakeOpenAi;
const ADAPTERS: [string, Start, (baseUrl: string) => Provider][] = [
  ['openai-compatible', startFakeOpenAi, (baseUrl) => createOpenAiCompatible({ baseUrl, apiKey: 'k' })],
  ['openai', startFakeOpenAiResponses, (baseUrl) => createOpenAi({ baseUrl, apiKey: 'k' })],
];
const cases = ADAPTERS.flatMap(([name, start, create]) =>
  Object.entries(SCHEMAS).map(([kind, schema]) => ({ name, kind, start, create, schema })),
);

test.each(cases)('$name: a server with a small grammar answers to $kind', async (each) => {
  const { start, create, schema } = each;
  await using server = await start(refuse);
  const tools = [{ name: 't', description: 'T.', parameters: schema }];
  for (const over of [{ tools }, { replySchema: schema }]) {
    const events = await collectEvents(create(server.url), sampleRequest(over));
    expect(events.at(-1)).toMatchObject({ type: 'done' });
  }
});

test('OpenAI itself gets the whole schema', async () => {
  await using server = await startFakeOpenAi();
  const quirks = { schemas: 'whole' } as const;
  const provider = createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k', quirks });
  const parameters = schemaOf(z.object({ x: z.email() }));
  await collectEvents(provider, sampleRequest({ tools: [{ name: 't', description: 'T.', parameters }] }));
  expect(server.requests[0]?.body).toMatchObject({ tools: [{ function: { parameters } }] });
});

test('bounds that calls keep by themselves are not told', () => {
  const schema = z.object({
    name: z.string().min(1).max(5_000),
    at: z.iso.datetime(),
    of: z.array(z.string()).min(1),
    hours: z.number().positive(),
    euros: z.number().max(50),
  });
  const { properties } = plainSchema(schemaOf(schema)) as {
    properties: Record<string, { description?: string }>;
  };
  expect(Object.entries(properties).map(([name, { description }]) => [name, description])).toEqual([
    ['name', undefined],
    ['at', '{format: "date-time"}'],
    ['of', undefined],
    ['hours', undefined],
    ['euros', '{maximum: 50}'],
  ]);
});

test('omitted keywords are listed at the end of the description', () => {
  const text = { type: 'string', description: 'A text.', maxLength: 200 };
  expect(plainSchema(text)).toEqual({ type: 'string', description: 'A text. {maxLength: 200}' });
  expect(plainSchema(schemaOf(z.int()))).toEqual({ type: 'integer' });
});

test('references, choices and fixed values stay, and fields may have the names of keywords', () => {
  const schema = {
    type: 'object',
    properties: { pattern: { $ref: '#/$defs/a' }, b: { anyOf: [{ const: 1 }, { enum: ['x'] }] } },
    required: ['pattern'],
    additionalProperties: false,
    $defs: { a: { type: ['string', 'null'] } },
  };
  expect(plainSchema(schema)).toEqual(schema);
});

test('a schema that refers to itself as a whole becomes one of its definitions', () => {
  const children = { type: 'array', items: { $ref: '#' } };
  const told = { type: 'array', items: { $ref: '#/$defs/whole_' } };
  const $defs = { whole: { type: 'string' } };
  expect(plainSchema({ type: 'object', properties: { children }, $defs })).toEqual({
    type: 'object',
    properties: { children: told },
    $defs: { ...$defs, whole_: { type: 'object', properties: { children: told } } },
  });
});

test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
  ['a type that is none', { type: 'any' }, { description: '{type: "any"}' }],
  ['no choice at all', { enum: [] }, { description: '{enum: not shown}' }],
  ['no kind at all', { anyOf: [] }, { description: '{anyOf: not shown}' }],
  ['a reference that leads nowhere', { $ref: '#/$defs/none' }, { description: '{$ref: "#/$defs/none"}' }],
  ['items that may be anything', { type: 'array', items: true }, { type: 'array', items: {} }],
])('%s is left out: llama.cpp refuses the request for it', (_, schema, plain) => {
  expect(plainSchema(schema)).toEqual(plain);
});

test('a tuple becomes a list whose items may have any of its types', () => {
  const tuple = { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'number' } };
  expect(plainSchema(tuple)).toEqual({
    type: 'array',
    items: { anyOf: [{ type: 'string' }, { type: 'number' }] },
    description: '{prefixItems: 1, in this order}',
  });
});

test('a field named $ref is left out and stays possible', () => {
  const properties = { $ref: { type: 'string' }, a: { type: 'string' } };
  expect(plainSchema({ type: 'object', properties, additionalProperties: false })).toEqual({
    type: 'object',
    properties: { a: { type: 'string' } },
    additionalProperties: true,
    description: '{properties: also $ref}',
  });
});

test('of definitions that are each other only the references in a circle are left out', () => {
  const list = { type: 'array', items: { $ref: '#/$defs/B' } };
  const $defs = { A: { anyOf: [{ $ref: '#/$defs/B' }, list] }, B: { $ref: '#/$defs/A' }, C: list };
  expect(plainSchema({ $ref: '#/$defs/C', $defs })).toEqual({
    $ref: '#/$defs/C',
    $defs: {
      A: { anyOf: [{ description: '{$ref: "#/$defs/B"}' }, list] },
      B: { description: '{$ref: "#/$defs/A"}' },
      C: list,
    },
  });
});

test('a circle of any length is found', () => {
  const names = Array.from({ length: 20_000 }, (_, index) => `d${index}`);
  const $defs = Object.fromEntries(
    names.map((name, index) => [name, { $ref: `#/$defs/${names[index + 1] ?? 'd0'}` }]),
  );
  expect(JSON.stringify(plainSchema({ $defs }))).not.toContain('"$ref":');
});

test('a schema of any depth is cut', () => {
  let deep: Record<string, unknown> = { type: 'string' };
  for (let level = 0; level < 20_000; level += 1) deep = { type: 'array', items: deep };
  expect(JSON.stringify(plainSchema(deep)).length).toBeLessThan(3_000);
});
