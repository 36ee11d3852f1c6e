import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { openStage } from './stage.ts';

const clientOf = (baseURL: string, more = {}) =>
  new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0, ...more });
const ADA = '{"name":"Ada","age":36}';
const GO = { model: 'bo', messages: [{ role: 'user' as const, content: 'Who?' }] };
const SAVE = {
  type: 'function' as const,
  function: {
    name: 'save',
    description: 'Saves.',
    parameters: {
      type: 'object',
      properties: { name: { type: 'string' }, age: { type: 'number' } },
      required: ['name', 'age'],
    },
  },
};

/** What the model was sent as the form of its answer. */
function askedForm(body: unknown): unknown {
  return (body as { response_format?: { json_schema?: { schema?: unknown } } }).response_format?.json_schema
    ?.schema;
}

const WEATHER = {
  type: 'function' as const,
  function: {
    name: 'weather',
    description: 'The weather at a place.',
    parameters: {
      $defs: { Place: { type: 'string', description: 'A town' } },
      type: 'object',
      properties: { at: { $ref: '#/$defs/Place' } },
      required: ['at'],
    },
  },
};
const calling = (say: string, ...calls: [name: string, args: object][]) =>
  JSON.stringify({ say, calls: calls.map(([name, args]) => ({ name, arguments: args })) });

test('tools that are offered are called back over the wire, and their results come with the next message', async () => {
  await using stage = await openStage(['bo'], {
    answers: {
      bo: [calling('', ['weather', { at: 'Bern' }], ['weather', { at: 'Basel' }]), calling('Rain in both.')],
    },
  });
  const client = clientOf(`${stage.url}/api/v1`);
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Weather?' }];
  const tools = [WEATHER, SAVE];
  const first = await client.chat.completions.create({ model: 'bo', messages, tools });
  expect(first.choices[0]).toMatchObject({
    finish_reason: 'tool_calls',
    message: {
      content: null,
      tool_calls: [
        { type: 'function', function: { name: 'weather', arguments: '{"at":"Bern"}' } },
        { function: { arguments: '{"at":"Basel"}' } },
      ],
    },
  });
  const told = JSON.stringify(askedForm(stage.requests('bo')[0]?.body));
  for (const words of ['The weather at a place.', '"#/$defs/t0_Place"', '"enum":["save"]'])
    expect(told).toContain(words);
  const answer = first.choices[0]?.message;
  if (!answer) throw new Error('no answer');
  const ids = (answer.tool_calls ?? []).map(({ id }) => id);
  expect(new Set(ids).size).toBe(2);
  messages.push(
    answer,
    ...ids.map((tool_call_id) => ({ role: 'tool' as const, tool_call_id, content: 'Rain' })),
  );
  const second = await client.chat.completions.create({ model: 'bo', messages, tools });
  expect(second.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Rain in both.' } });
  expect(second.choices[0]?.message.tool_calls).toBeUndefined();
  expect(JSON.stringify(stage.raw('bo'))).toMatch(/Result of weather: Rain[^]*Result of weather: Rain/);
});

test('calls are streamed by both APIs, beside words', async () => {
  const reply = calling('A moment.', ['weather', { at: 'Bern' }], ['save', { name: 'Ada', age: 36 }]);
  await using stage = await openStage(['bo'], { answers: { bo: () => ({ text: reply }) } });
  const client = clientOf(`${stage.url}/api/v1`);
  const chat = client.chat.completions.stream({ ...GO, tools: [WEATHER, SAVE] });
  const { choices } = await chat.finalChatCompletion();
  expect(choices[0]).toMatchObject({
    finish_reason: 'tool_calls',
    message: {
      content: 'A moment.',
      tool_calls: [{ function: { name: 'weather' } }, { function: { name: 'save' } }],
    },
  });
  const flat = [WEATHER, SAVE].map(({ function: callee }) => ({
    type: 'function' as const,
    strict: false,
    ...callee,
  }));
  const stream = client.responses.stream({ model: 'bo', input: 'Who?', tools: flat });
  const whole = await stream.finalResponse();
  expect(whole.output).toMatchObject([
    { type: 'message', content: [{ text: 'A moment.' }] },
    { type: 'function_call', name: 'weather', arguments: '{"at":"Bern"}' },
    { type: 'function_call', name: 'save', arguments: ADA },
  ]);
  expect(new Set(whole.output.map(({ id }) => id)).size).toBe(3);
  const again = await client.responses.retrieve(whole.id);
  expect(again.output).toMatchObject(whole.output.map(({ type, id }) => ({ type, id })));
  // The items of the answer name its conversation.
  const next = await client.responses.create({
    model: 'bo',
    input: [
      { role: 'user', content: 'Who?' },
      ...whole.output,
      {
        type: 'function_call_output',
        call_id: (whole.output[1] as { call_id: string }).call_id,
        output: 'Rain',
      },
    ] as never,
    tools: flat,
  });
  expect(next.conversation).toEqual(whole.conversation);
});

test.each([
  ['words alone, where nothing has to be called', 'auto', 'It is blue.', 'It is blue.'],
  ['data that is no call', 'auto', '{"colour":"blue"}', '{"colour":"blue"}'],
  ['words in the form', undefined, calling('It is blue.'), 'It is blue.'],
])('tools that are offered and not called: %s', async (_, tool_choice, reply, said) => {
  await using stage = await openStage(['bo'], { answers: { bo: [reply] } });
  const asked = { ...GO, tools: [WEATHER], ...(tool_choice && { tool_choice: 'auto' as const }) };
  const { choices } = await clientOf(`${stage.url}/api/v1`).chat.completions.create(asked);
  expect(choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: said } });
});

test('a call of a tool that was not offered, or with other arguments, never reaches the client', async () => {
  const replies = [
    calling('', ['drop', {}]),
    calling('', ['weather', {}]),
    calling('', ['weather', { at: 'Bern' }]),
  ];
  await using stage = await openStage(['bo'], { answers: { bo: replies } });
  const asked = { ...GO, tools: [WEATHER, SAVE], tool_choice: 'required' as const };
  const { choices } = await clientOf(`${stage.url}/api/v1`).chat.completions.create(asked);
  expect(choices[0]?.message.tool_calls).toMatchObject([{ function: { arguments: '{"at":"Bern"}' } }]);
  expect(stage.requests('bo')).toHaveLength(3);
});

test('long numbers of a call keep their digits', async () => {
  const reply = '{"say":"","calls":[{"name":"look","arguments":{"id":9007199254740993}}]}';
  await using stage = await openStage(['bo'], { answers: { bo: [reply] } });
  const parameters = { type: 'object', properties: { id: { type: 'number' } } };
  const look = { type: 'function' as const, function: { name: 'look', parameters } };
  const { choices } = await clientOf(`${stage.url}/api/v1`).chat.completions.create({ ...GO, tools: [look] });
  expect(choices[0]?.message.tool_calls).toMatchObject([
    { function: { arguments: '{"id":9007199254740993}' } },
  ]);
});
