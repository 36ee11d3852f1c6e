import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { createTroupe, defineTool } from '../../src/index.ts';
import type { ModelEvent, Provider } from '../../src/providers/provider.ts';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { quirksOf, toolRules } from '../../src/providers/quirks.ts';
import { wholeToolSchema } from '../../src/providers/tool-schema.ts';
import { collectEvents, sampleRequest } from '../../packages/testing/src/provider-conformance.ts';
import { startFakeAnthropic, startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { SCHEMAS, text } from './odd-schemas.ts';
import { assistant, result, user } from './sent.ts';

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Every schema within a schema, with the schema itself. */
function partsOf(schema: unknown): Fields[] {
  if (Array.isArray(schema)) return schema.flatMap(partsOf);
  if (!isFields(schema)) return [];
  const { properties, $defs, definitions, ...rest } = schema;
  const maps = [properties, $defs, definitions].flatMap((map) => (isFields(map) ? Object.values(map) : []));
  return [schema, ...maps.flatMap(partsOf), ...Object.values(rest).flatMap(partsOf)];
}

const TOP = ['anyOf', 'oneOf', 'allOf'];
const KEY = /^[a-zA-Z0-9_.-]{1,64}$/;
const keysIn = (schema: unknown) =>
  partsOf(schema).flatMap(({ properties }) => (isFields(properties) ? Object.keys(properties) : []));
const HOSTS = [
  'api.openai.com',
  'generativelanguage.googleapis.com/v1beta/openai',
  'api.mistral.ai',
  'example.com',
];
const GEMINI = new Set([
  'type',
  'description',
  'nullable',
  'enum',
  'items',
  'properties',
  'required',
  'anyOf',
]);

/** What vendors are recorded to refuse, by the names of their hosts. */
const REFUSES: Record<string, (schema: Fields) => string | null> = {
  'api.anthropic.com': (schema) => {
    if (schema['type'] !== 'object') return "input_schema.type: Input should be 'object'";
    if (TOP.some((name) => name in schema))
      return 'input_schema does not support oneOf, allOf, or anyOf at the top level';
    if (keysIn(schema).some((key) => !KEY.test(key)))
      return "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'";
    const isInvalid = ({ items, required, exclusiveMinimum, enum: values }: Fields) =>
      Array.isArray(items) ||
      (required !== undefined && !Array.isArray(required)) ||
      typeof exclusiveMinimum === 'boolean' ||
      (Array.isArray(values) && values.length === 0);
    return partsOf(schema).some(isInvalid)
      ? 'JSON schema is invalid. It must match JSON Schema draft 2020-12'
      : null;
  },
  'api.openai.com': (schema) => {
    if (schema['type'] !== 'object' || [...TOP, 'enum', 'not'].some((name) => name in schema))
      return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level";
    return partsOf(schema).some(({ type, items }) => type === 'array' && !isFields(items))
      ? 'array schema missing items'
      : null;
  },
  'generativelanguage.googleapis.com': (schema) => {
    for (const part of partsOf(schema)) {
      const unknown = Object.keys(part).find((name) => !GEMINI.has(name));
      if (unknown !== undefined) return `Unknown name "${unknown}": Cannot find field.`;
      if (Array.isArray(part['type'])) return 'Proto field is not repeating, cannot start list.';
      if (part['type'] === 'array' && !isFields(part['items'])) return 'items: missing field.';
      const {
        required = [],
        properties = {},
        enum: values = [],
      } = part as { required?: string[]; properties?: Fields; enum?: unknown[] };
      if (required.some((name) => !Object.hasOwn(properties, name))) return 'property is not defined';
      if (values.some((value) => typeof value !== 'string')) return 'Invalid value at enum (TYPE_STRING)';
      if (part['type'] === undefined && part['anyOf'] === undefined)
        return "schema didn't specify the schema type field";
    }
    return null;
  },
  'api.moonshot.ai': (schema) => {
    if (schema['type'] !== 'object') return 'tools.function.parameters.type is required and must be "object"';
    return partsOf(schema).some((part) => 'type' in part && ('anyOf' in part || 'oneOf' in part))
      ? 'when using anyOf, type should be defined in anyOf items instead of the parent schema'
      : null;
  },
  // Passes requests on to vendors, Anthropic among them.
  'openrouter.ai': (schema) => REFUSES['api.anthropic.com']?.(schema) ?? null,
};

const PROVIDERS: Record<string, [host: string, make: () => Provider]> = {
  anthropic: ['api.anthropic.com', () => createAnthropic({ apiKey: 'k' })],
  'openai, responses': ['api.openai.com', () => createOpenAi({ apiKey: 'k' })],
  ...Object.fromEntries(
    Object.entries({
      'openai, chat': 'https://api.openai.com/v1',
      gemini: 'https://generativelanguage.googleapis.com/v1beta/openai',
      moonshot: 'https://api.moonshot.ai/v1',
      openrouter: 'https://openrouter.ai/api/v1',
    }).map(([name, baseUrl]) => [
      name,
      [new URL(baseUrl).hostname, () => createOpenAiCompatible({ baseUrl, apiKey: 'k' })],
    ]),
  ),
};

const urlOf = (input: string | URL | Request) => new URL(input instanceof Request ? input.url : input);

let sent: Fields[] = [];
beforeEach(() => {
  sent = [];
  const real = globalThis.fetch;
  vi.stubGlobal('fetch', async (input: string | URL | Request, init?: RequestInit) => {
    const { hostname } = urlOf(input);
    const refuses = REFUSES[hostname];
    if (!refuses) return real(input, init);
    const { tools = [] } = JSON.parse(init?.body as string) as { tools?: Fields[] };
    sent = tools.map((tool) => {
      const made = (tool['function'] ?? tool) as Fields;
      return (made['parameters'] ?? made['input_schema']) as Fields;
    });
    const [why] = sent.map(refuses).filter((each) => each !== null);
    return new Response(JSON.stringify({ error: { message: why ?? 'taken' } }), {
      status: why === undefined ? 418 : 400,
    });
  });
});
afterEach(() => void vi.unstubAllGlobals());

describe.each(Object.entries(PROVIDERS))('%s', (_, [, make]) => {
  test.each(Object.entries(SCHEMAS))('takes a tool with %s', async (__, parameters) => {
    const tools = [{ name: 'odd', description: 'O.', parameters }];
    const events = await collectEvents(make(), sampleRequest({ tools }));
    expect(events.at(-1)).toMatchObject({ error: { message: expect.stringContaining('taken') } });
    expect(sent).toHaveLength(1);
  });

  test('takes a plain tool as it is', async () => {
    const parameters = {
      type: 'object',
      properties: { a: { type: 'string', description: 'A.' } },
      required: ['a'],
    };
    await collectEvents(make(), sampleRequest({ tools: [{ name: 'plain', description: 'P.', parameters }] }));
    expect(sent).toEqual([parameters]);
  });

  test('says which tool of several it has refused', async () => {
    vi.stubGlobal('fetch', async (input: string | URL | Request, init?: RequestInit) => {
      const { href } = urlOf(input);
      if (href.startsWith('data:')) return new Response();
      const message = href.includes('google')
        ? 'Invalid JSON payload received. Unknown name "x" at \'tools[0].function_declarations[1].parameters\''
        : 'tools.1.custom.input_schema: something new';
      expect(init?.body).toBeDefined();
      return new Response(JSON.stringify([{ error: { code: 400, message } }]), { status: 400 });
    });
    const tools = ['one', 'two', 'three'].map((name) => ({
      name: `srv__${name}`,
      description: 'x',
      parameters: { type: 'object' },
    }));
    expect((await collectEvents(make(), sampleRequest({ tools }))).at(-1)).toMatchObject({
      error: { code: 'provider_invalid_request', message: expect.stringContaining('(the tool "srv__two")') },
    });
  });
});

test.each([
  ['openai, responses', (body: Fields) => (body['text'] as { format: Fields }).format['schema']],
  [
    'openai, chat',
    (body: Fields) => (body['response_format'] as { json_schema: Fields }).json_schema['schema'],
  ],
  ['gemini', (body: Fields) => (body['response_format'] as { json_schema: Fields }).json_schema['schema']],
])('%s takes a reply that is one of several objects', async (name, schemaIn) => {
  const [host, make] = PROVIDERS[name] ?? [];
  let reply: unknown;
  vi.stubGlobal('fetch', (input: string | URL | Request, init?: RequestInit) => {
    if (urlOf(input).href.startsWith('data:')) return Promise.resolve(new Response());
    reply = schemaIn(JSON.parse(init?.body as string) as Fields);
    return Promise.resolve(new Response('{}', { status: 418 }));
  });
  const replySchema = {
    anyOf: [
      { type: 'object', properties: { a: text } },
      { type: 'object', properties: { b: text } },
    ],
  };
  if (make) await collectEvents(make(), sampleRequest({ replySchema }));
  expect(REFUSES[host ?? '']?.(reply as Fields)).toBeNull();
  expect(reply).toMatchObject({ type: 'object', properties: { a: text, b: text } });
});

describe('what models are told of alternatives at the top', () => {
  test('all properties are there, those that all alternatives require are required, and words say the rest', async () => {
    const parameters = {
      type: 'object',
      description: 'Of a file.',
      oneOf: [
        { properties: { kind: { const: 'a' }, x: text }, required: ['kind', 'x'] },
        { properties: { kind: { const: 'b' }, x: { type: 'number' } }, required: ['kind'] },
      ],
    };
    await collectEvents(
      createAnthropic({ apiKey: 'k' }),
      sampleRequest({ tools: [{ name: 'odd', description: 'O.', parameters }] }),
    );
    expect(sent).toEqual([
      {
        type: 'object',
        description: `Of a file.\n\n{oneOf: ${JSON.stringify(parameters.oneOf)}}`,
        properties: { kind: { enum: ['a', 'b'] }, x: { anyOf: [text, { type: 'number' }] } },
        required: ['kind'],
      },
    ]);
  });
});

describe('properties that were renamed', () => {
  const LONG = 'k'.repeat(70);
  const parameters = {
    type: 'object',
    properties: {
      '$.xgafv': text,
      'StartTime<': { type: 'integer', description: 'When.' },
      '_.xgafv': text,
      [LONG]: { type: 'object', properties: { '@id': text } },
    },
    required: ['StartTime<'],
  };
  const tools = [{ name: 'odd', description: 'O.', parameters }];
  const named = { there: '_.xgafv_2', time: 'StartTime_', long: 'k'.repeat(64), id: '_id' };

  test.each([
    ['anthropic', startFakeAnthropic, (baseUrl: string) => createAnthropic({ baseUrl, apiKey: 'k' })],
    [
      'openai-compatible',
      startFakeOpenAi,
      (baseUrl: string) => createOpenAiCompatible({ baseUrl, apiKey: 'k' }),
    ],
  ] as const)(
    '%s: calls come with the real names, with every digit, and go back with the others',
    async (_, start, make) => {
      const args = `{"${named.time}": 12345678901234567890, "${named.there}" :"\\"a\\": b", "_.xgafv":"c","${named.long}":{"${named.id}":"${named.id}"}}`;
      const real = `{"StartTime<": 12345678901234567890, "$.xgafv" :"\\"a\\": b", "_.xgafv":"c","${LONG}":{"@id":"${named.id}"}}`;
      await using server = await start(() => ({ calls: [{ id: 'c1', name: 'odd', args }] }));
      const events = await collectEvents(make(server.url), sampleRequest({ tools }));
      const calls = events.flatMap((event) => (event.type === 'call' ? [event.call] : []));
      expect(calls).toEqual([{ id: 'c1', name: 'odd', args: real }]);
      const pieces = events.flatMap((event: ModelEvent) => (event.type === 'calling' ? [event.delta] : []));
      expect(pieces.join('')).toBe(real);
      const before = {
        ...assistant(''),
        calls: [{ id: 'c1', name: 'odd', args: '{"StartTime<":1}' }],
      } as ReturnType<typeof assistant>;
      await collectEvents(
        make(server.url),
        sampleRequest({ tools, messages: [user('one'), before, result('c1', '1')] }),
      );
      const body = JSON.stringify(server.requests.at(-1)?.body);
      expect(body).not.toContain('"StartTime<":');
      expect(body).toMatch(/StartTime_\\*":1/);
    },
  );

  test('a call that has not the names it was told keeps its own', async () => {
    const args = '{"StartTime<":1}';
    await using server = await startFakeOpenAi(() => ({ calls: [{ id: 'c1', name: 'odd', args }] }));
    const events = await collectEvents(
      createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k' }),
      sampleRequest({ tools }),
    );
    expect(events).toContainEqual({ type: 'call', call: { id: 'c1', name: 'odd', args } });
  });

  test('with the setting whole a server gets and gives them as they are', async () => {
    await using server = await startFakeOpenAi(() => ({ text: 'ok' }));
    const quirks = quirksOf('https://gpu.example/v1', { schemas: 'whole' });
    await collectEvents(
      createOpenAiCompatible({ baseUrl: server.url, apiKey: 'k', quirks }),
      sampleRequest({ tools }),
    );
    expect(server.requests[0]?.body).toMatchObject({ tools: [{ function: { parameters } }] });
  });
});

test('a tool whose schema no object fits is left out with a warning, and its agent answers', async () => {
  await using server = await startFakeOpenAi(() => ({ text: 'Hello.' }));
  const schema = z.looseObject({});
  const odd = defineTool({
    name: 'odd',
    description: 'O.',
    schema,
    parameters: { type: 'object', anyOf: [{ type: 'string' }] },
    run: () => '',
  });
  const fine = defineTool({
    name: 'fine',
    description: 'F.',
    schema,
    parameters: { type: 'object' },
    run: () => '',
  });
  const warnings: string[] = [];
  const bo = {
    id: 'bo',
    provider: 'openai-compatible' as const,
    baseUrl: server.url,
    model: 'm',
    contextWindow: 100_000,
    tools: ['odd', 'fine'],
  };
  await using troupe = await createTroupe(
    { agents: [bo], tools: [odd, fine] },
    { onWarning: (error, where) => warnings.push(`${where}: ${String(error)}`) },
  );
  expect(warnings).toContainEqual(
    expect.stringMatching(/tool "odd" of @bo: it is left out: no object fits its schema/),
  );
  expect((await troupe.ask('c1', 'Hello.')).text).toBe('Hello.');
  const { tools } = (await server.arrived()).body as { tools: { function: { name: string } }[] };
  const names = tools.map(({ function: { name } }) => name);
  expect(names).toContain('fine');
  expect(names).not.toContain('odd');
});

test.each<[string, (inner: Fields) => Fields]>([
  ['a list in items', (inner) => ({ type: 'array', items: [inner] })],
  ['prefixItems', (inner) => ({ type: 'array', prefixItems: [inner] })],
  ['items', (inner) => ({ type: 'array', items: inner })],
  ['properties', (inner) => ({ type: 'object', properties: { a: inner } })],
  ['a type beside alternatives', (inner) => ({ type: 'object', anyOf: [inner], oneOf: [{}] })],
  ['alternatives of one property', (inner) => ({ anyOf: [{ properties: { a: inner } }, inner] })],
  ['allOf', (inner) => ({ allOf: [inner, { properties: { a: {} } }] })],
  ['not', (inner) => ({ not: inner })],
  ['definitions', (inner) => ({ $ref: '#/$defs/a', $defs: { a: inner } })],
])('a schema with sixty levels of %s is sent at a few times its length', (_, around) => {
  let schema: Fields = { type: 'string' };
  for (let level = 0; level < 60 && JSON.stringify(schema).length < 20_000; level++) schema = around(schema);
  const listed = { type: 'object', properties: { a: schema } };
  const rules = [
    { shape: wholeToolSchema },
    ...HOSTS.map((host) => toolRules(quirksOf(`https://${host}/v1`))),
  ];
  for (const rule of rules) {
    for (const whole of [listed, schema]) {
      const sent = JSON.stringify(rule?.shape(whole) ?? {}).length;
      expect(sent).toBeLessThan(6 * JSON.stringify(whole).length + 10_000);
    }
  }
});
