import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { openStage, PAY, PAYS } from './stage.ts';

const clientOf = (baseURL: string, more = {}) =>
  new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0, ...more });
const Person = z.object({ name: z.string(), age: z.number() });
const ADA = '{"name":"Ada","age":36}';
const GO = { model: 'bo', messages: [{ role: 'user' as const, content: 'Who?' }] };
const parameters = z.toJSONSchema(Person) as Record<string, unknown>;
const SAVE = { type: 'function' as const, function: { name: 'save', description: 'Saves.', parameters } };
const OTHER = { type: 'function' as const, function: { name: 'drop', parameters: { type: 'object' } } };

/** What the model was sent as the form of its answer. */
function askedForm(body: unknown): unknown {
  return (body as { response_format?: { json_schema?: { schema?: unknown } } }).response_format?.json_schema
    ?.schema;
}

test('response_format is the schema of the answer, and is told to the model', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: [ADA, ADA, 'Ada.'] } });
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  const asked = { ...GO, response_format: zodResponseFormat(Person, 'person') };
  const { choices } = await client.chat.completions.parse(asked);
  expect(choices[0]?.message.parsed).toEqual({ name: 'Ada', age: 36 });
  expect(askedForm(stage.requests('bo')[0]?.body)).toMatchObject({
    properties: { name: { type: 'string' } },
  });
  let text = '';
  for await (const chunk of await client.chat.completions.create({ ...asked, stream: true }))
    text += chunk.choices[0]?.delta.content ?? '';
  expect(JSON.parse(text)).toEqual({ name: 'Ada', age: 36 });
  // The next message asks for plain text again.
  const next = await client.chat.completions.create({ ...GO, response_format: { type: 'text' } });
  expect(next.choices[0]?.message.content).toBe('Ada.');
  expect(askedForm(stage.requests('bo')[2]?.body)).toBeUndefined();
});

test('text.format is the schema of the answer of the Responses API, whole, streamed and read again', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: [ADA, ADA] } });
  const client = clientOf(`${stage.url}/api/v1`);
  const asked = { model: 'bo', input: 'Who?', text: { format: zodTextFormat(Person, 'person') } };
  const whole = await client.responses.parse(asked);
  expect(whole.output_parsed).toEqual({ name: 'Ada', age: 36 });
  expect((await client.responses.retrieve(whole.id)).output_text).toBe(whole.output_text);
  const stream = client.responses.stream(asked);
  expect((await stream.finalResponse()).output_parsed).toEqual({ name: 'Ada', age: 36 });
});

test.each([
  ['json_object', { type: 'json_object' as const }, ADA],
  [
    'json_schema with definitions, choices, nulls and a pattern',
    {
      type: 'json_schema' as const,
      json_schema: {
        name: 'person',
        strict: true,
        schema: {
          $schema: 'http://json-schema.org/draft-07/schema#',
          $defs: { Age: { anyOf: [{ type: 'integer', minimum: 0 }, { type: 'null' }], title: 'Age' } },
          type: 'object',
          title: 'Person',
          properties: { name: { type: 'string', pattern: '^A' }, age: { $ref: '#/$defs/Age' } },
          required: ['name', 'age'],
          additionalProperties: false,
        },
      },
    },
    '{"name":"Ada","age":null}',
  ],
  [
    'json_schema with the definitions of an older draft',
    {
      type: 'json_schema' as const,
      json_schema: {
        name: 'tree',
        schema: {
          definitions: {
            Node: {
              type: 'object',
              properties: { of: { type: 'array', items: { $ref: '#/definitions/Node' } } },
              required: ['of'],
            },
          },
          $ref: '#/definitions/Node',
        },
      },
    },
    '{"of":[{"of":[]}]}',
  ],
])('%s is honoured', async (_, response_format, reply) => {
  await using stage = await openStage(['bo'], { answers: { bo: [`\`\`\`json\n${reply}\n\`\`\``] } });
  const { choices } = await clientOf(`${stage.url}/api/v1`).chat.completions.create({
    ...GO,
    response_format,
  });
  expect(JSON.parse(choices[0]?.message.content ?? '')).toEqual(JSON.parse(reply));
});

test('an answer that does not fit the form is asked for again, and is never given', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: () => ({ text: '{"name":"Ada"}' }) } });
  const asked = { ...GO, response_format: zodResponseFormat(Person, 'person') };
  await expect(clientOf(`${stage.url}/api/v1`).chat.completions.create(asked)).rejects.toMatchObject({
    status: 422,
    error: { code: 'provider_invalid_reply' },
  });
  expect(stage.requests('bo').length).toBeGreaterThan(1);
});

test('whoever takes over answers in the form, and who asks others first', async () => {
  await using stage = await openStage(['desk', 'billing', 'clerk', 'helper'], {
    agents: { desk: { tools: ['handoff'] }, clerk: { tools: ['delegate'] } },
    answers: {
      desk: [{ calls: [{ name: 'handoff', args: '{"to":"billing","goal":"name her"}' }] }],
      billing: [ADA],
      clerk: [{ calls: [{ name: 'delegate', args: '{"to":"helper","task":"Who is it?"}' }] }, ADA],
      helper: ['It is Ada, 36.'],
    },
  });
  const client = clientOf(`${stage.url}/api/v1`);
  for (const model of ['desk', 'clerk']) {
    const asked = { ...GO, model, response_format: zodResponseFormat(Person, 'person') };
    const { choices } = await client.chat.completions.parse(asked);
    expect([model, choices[0]?.message.parsed]).toEqual([model, { name: 'Ada', age: 36 }]);
  }
  expect(askedForm(stage.requests('helper')[0]?.body)).toBeUndefined();
});

test('an answer that waits for people is not in the form', async () => {
  await using stage = await openStage(['bo'], {
    tools: [PAY],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [PAYS] },
  });
  const asked = { ...GO, response_format: zodResponseFormat(Person, 'person') };
  await expect(clientOf(`${stage.url}/api/v1`).chat.completions.create(asked)).rejects.toMatchObject({
    status: 422,
    message: expect.stringContaining('@bo waits for people first'),
  });
});

test.each([
  ['by its name', [SAVE, OTHER], { type: 'function', function: { name: 'save' } }],
  ['as the only one, required', [SAVE], 'required'],
  [
    'as the only one allowed',
    [SAVE, OTHER],
    {
      type: 'allowed_tools',
      allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'save' } }] },
    },
  ],
])('a tool that is forced %s is the form of the answer, which is its call', async (_, tools, tool_choice) => {
  await using stage = await openStage(['bo'], { answers: { bo: [ADA, ADA] } });
  const client = clientOf(`${stage.url}/api/v1`);
  // A call has no text to which the form could apply.
  const asked = {
    ...GO,
    tools,
    tool_choice,
    response_format: { type: 'json_object' },
  } as OpenAI.ChatCompletionCreateParamsNonStreaming;
  const { choices } = await client.chat.completions.create(asked);
  expect(choices[0]).toMatchObject({
    finish_reason: 'tool_calls',
    message: {
      content: null,
      tool_calls: [{ type: 'function', function: { name: 'save', arguments: ADA } }],
    },
  });
  expect(choices[0]?.message.tool_calls?.[0]?.id.length).toBeLessThanOrEqual(40);
  const stream = client.chat.completions.stream({ ...asked, stream: true } as never);
  const final = await stream.finalChatCompletion();
  expect(final.choices[0]?.message.tool_calls?.[0]).toMatchObject({
    function: { name: 'save', arguments: ADA },
  });
});

test('the Responses API gives a forced tool as a function_call, and takes its result', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: [ADA, ADA, 'Saved.'] } });
  const client = clientOf(`${stage.url}/api/v1`);
  const tools = [{ type: 'function' as const, name: 'save', parameters, strict: true }];
  const asked = {
    model: 'bo',
    input: 'Who?',
    tools,
    tool_choice: { type: 'function' as const, name: 'save' },
  };
  const first = await client.responses.create(asked);
  const [call] = first.output;
  expect(call).toMatchObject({ type: 'function_call', name: 'save', arguments: ADA, status: 'completed' });
  const types: string[] = [];
  for await (const { type } of await client.responses.create({ ...asked, stream: true })) types.push(type);
  expect(types.slice(2)).toEqual([
    'response.output_item.added',
    'response.function_call_arguments.delta',
    'response.function_call_arguments.done',
    'response.output_item.done',
    'response.completed',
  ]);
  if (call?.type !== 'function_call') throw new Error('no call');
  const output = { type: 'function_call_output' as const, call_id: call.call_id, output: 'saved as 7' };
  const input = [{ role: 'user' as const, content: 'Who?' }, call, output];
  const next = await client.responses.create({ model: 'bo', input });
  expect([next.output_text, next.conversation]).toEqual(['Saved.', first.conversation]);
  expect(JSON.stringify(stage.raw('bo'))).toContain('saved as 7');
});

test('the older fields force a function, too', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: [ADA] } });
  const { choices } = await clientOf(`${stage.url}/api/v1`).chat.completions.create({
    ...GO,
    functions: [{ name: 'save', parameters }],
    function_call: { name: 'save' },
  });
  expect(choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { name: 'save', arguments: ADA } });
});

test.each([
  ['tools of the vendor', { tools: [{ type: 'web_search' }] }, /"web_search\\" are not taken/],
  [
    'tools and a form at once',
    { tools: [SAVE], response_format: { type: 'json_object' } },
    /leave one of both out/,
  ],
  [
    'a forced tool that is not given',
    { tools: [SAVE], tool_choice: { type: 'function', function: { name: 'x' } } },
    /the name \\"x\\"/,
  ],
  ['an unknown form', { response_format: { type: 'grammar' } }, /grammar.* is not taken/],
  [
    'a schema that cannot be checked',
    {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'x', schema: { $ref: 'https://example.com/x' } },
      },
    },
    /schema/,
  ],
  [
    'a schema that is too large',
    {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'x', schema: { type: 'string', enum: ['x'.repeat(70_000)] } },
      },
    },
    /65536/,
  ],
  ['sound', { modalities: ['text', 'audio'] }, /text/],
])('%s: refused in words, and nothing is stored', async (_, more, said) => {
  await using stage = await openStage(['bo']);
  const response = await fetch(`${stage.url}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...GO, ...more }),
  });
  expect([response.status, await response.text()]).toEqual([400, expect.stringMatching(said)]);
  expect(await stage.troupe.conversations()).toEqual([]);
});

test('tools that must not be called may be sent', async () => {
  await using stage = await openStage(['bo']);
  const asked = { ...GO, tools: [SAVE], tool_choice: 'none' as const };
  const { choices } = await clientOf(`${stage.url}/api/v1`).chat.completions.create(asked);
  expect(choices[0]?.message.content).toBe('bo answers 1');
});

const choices = (name: string) => ({ anyOf: [{ $ref: `#/$defs/${name}` }, { $ref: `#/$defs/${name}` }] });
const chain = Array.from({ length: 40 }, (_, i) => [
  `a${i}`,
  i === 39 ? { type: 'number' } : choices(`a${i + 1}`),
]);

test.each([
  [
    'choices within choices',
    { $defs: Object.fromEntries(chain) as object, $ref: '#/$defs/a0' },
    /5000 parts/,
  ],
  [
    'choices that lead back',
    { $defs: { a: { type: 'object', properties: { x: choices('a') } } }, $ref: '#/$defs/a' },
    /lead back/,
  ],
  [
    'choices that lead back by a detour',
    {
      $defs: {
        a: { type: 'object', properties: { x: { oneOf: [{ $ref: '#/$defs/b' }, { $ref: '#/$defs/c' }] } } },
        b: { type: 'object', properties: { y: { $ref: '#/$defs/a' } } },
        c: { type: 'object', properties: { y: { $ref: '#/$defs/a' }, z: {} } },
      },
      $ref: '#/$defs/a',
    },
    /lead back/,
  ],
  [
    'all of what leads back',
    { type: 'object', properties: { x: { allOf: [{ $ref: '#' }, { $ref: '#' }] } } },
    /lead back/,
  ],
])('%s, a schema whose check may never end, is refused in words', async (_, schema, said) => {
  await using stage = await openStage(['bo']);
  const response_format = { type: 'json_schema' as const, json_schema: { name: 'x', schema } };
  await expect(
    clientOf(`${stage.url}/api/v1`).chat.completions.create({ ...GO, response_format }),
  ).rejects.toMatchObject({ status: 400, message: expect.stringMatching(said) });
});

test('patterns are told to the model and not checked: one may never end', async () => {
  const reply = `{"x":"${'a'.repeat(60)}!"}`;
  await using stage = await openStage(['bo'], { answers: { bo: [reply] } });
  const schema = { type: 'object', properties: { x: { type: 'string', pattern: '^(a+)+$' } } };
  const response_format = { type: 'json_schema' as const, json_schema: { name: 'x', schema } };
  const { choices: given } = await clientOf(`${stage.url}/api/v1`).chat.completions.create({
    ...GO,
    response_format,
  });
  expect(given[0]?.message.content).toBe(reply);
  expect(JSON.stringify(stage.requests('bo')[0]?.body)).toContain('^(a+)+$');
});

test('a form of values within values is checked at every depth', async () => {
  const schema = {
    $defs: {
      Json: {
        anyOf: [
          { type: 'string' },
          { type: 'array', items: { $ref: '#/$defs/Json' } },
          { type: 'object', additionalProperties: { $ref: '#/$defs/Json' } },
        ],
      },
    },
    type: 'object',
    properties: { all: { $ref: '#/$defs/Json' } },
  };
  const reply = '{"all":{"a":["b",{"c":["d"]}]}}';
  await using stage = await openStage(['bo'], { answers: { bo: ['{"all":{"a":[1]}}', reply] } });
  const response_format = { type: 'json_schema' as const, json_schema: { name: 'x', schema } };
  const { choices: given } = await clientOf(`${stage.url}/api/v1`).chat.completions.create({
    ...GO,
    response_format,
  });
  expect(given[0]?.message.content).toBe(reply);
});
