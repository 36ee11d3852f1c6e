import OpenAI from 'openai';
import type { ChatCompletionMessageParam } from 'openai/resources';
import type { ResponseInput } from 'openai/resources/responses/responses';
import { expect, test } from 'vitest';
import { compact, type WireMessage } from '../../../test/support/compact.ts';
import { openStage, type Stage } from './stage.ts';

const clientOf = (baseURL: string, more = {}) =>
  new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0, ...more });

const PNG =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

const TOLD: ChatCompletionMessageParam[] = [
  { role: 'system', content: 'Be short.' },
  { role: 'user', content: 'My name is Uma.' },
  { role: 'assistant', content: 'Hello Uma.' },
  { role: 'user', content: 'What is my name?' },
];

/** Roles and texts of the last request to the agent's model, without reminders. */
function sent(stage: Stage, agent = 'bo', n?: number): string[] {
  return stage.raw(agent, n).map((message: WireMessage) => compact(message));
}

interface Way {
  name: string;
  /** Asks with a history, and returns the answer and its conversation. */
  ask: (
    client: OpenAI,
    told: readonly ChatCompletionMessageParam[],
  ) => Promise<{ text: string; conversation: string }>;
}

const WAYS: Way[] = [
  {
    name: 'chat completions',
    async ask(client, told) {
      const { data, response } = await client.chat.completions
        .create({ model: 'bo', messages: [...told] })
        .withResponse();
      const conversation = response.headers.get('x-troupe-conversation') ?? '';
      return { text: data.choices[0]?.message.content ?? '', conversation };
    },
  },
  {
    name: 'responses',
    async ask(client, told) {
      const input = told as unknown as ResponseInput;
      const { output_text: text, conversation } = await client.responses.create({ model: 'bo', input });
      return { text, conversation: conversation?.id ?? '' };
    },
  },
];

test.each(WAYS)(
  '$name: a history with answers begins a conversation with that history, each word once',
  async ({ ask }) => {
    await using stage = await openStage(['bo'], { answers: { bo: ['Uma.', 'Uma, still.'] } });
    const client = clientOf(`${stage.url}/api/v1`);
    expect((await ask(client, TOLD)).text).toBe('Uma.');
    expect(sent(stage)).toEqual([
      expect.stringMatching(/^user: .*Be short\..*My name is Uma\./s),
      'assistant: Hello Uma.',
      expect.stringMatching(/^user: .*What is my name\?/s),
    ]);
    const further: ChatCompletionMessageParam[] = [
      ...TOLD,
      { role: 'assistant', content: 'Uma.' },
      { role: 'user', content: 'And now?' },
    ];
    const { conversation } = await ask(client, further);
    expect(sent(stage)).toEqual([
      ...sent(stage, 'bo', 1),
      'assistant: Uma.',
      expect.stringMatching(/^user: .*And now\?/s),
    ]);
    const { events } = await stage.troupe.events(conversation);
    const words = events.flatMap(({ kind, body }) =>
      kind === 'message' ? [(body as { content: string }).content] : [],
    );
    expect(words.filter((text) => text.includes('My name is Uma.'))).toHaveLength(1);
    expect(words.at(-1)).toBe('Uma, still.');
  },
);

test.each(WAYS)('$name: a history begins a conversation that the base URL names, once', async ({ ask }) => {
  await using stage = await openStage(['bo'], { answers: { bo: ['Uma.', 'Uma, still.'] } });
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  await ask(client, TOLD);
  expect(sent(stage)).toContain('assistant: Hello Uma.');
  await ask(client, [...TOLD, { role: 'assistant', content: 'Uma.' }, { role: 'user', content: 'And now?' }]);
  const { events } = await stage.troupe.events('c1');
  const said = events.flatMap(({ kind, body }) =>
    kind === 'message' ? [(body as { content: string }).content] : [],
  );
  expect(said).toEqual([
    'Be short.\n\nMy name is Uma.',
    'Hello Uma.',
    'What is my name?',
    'Uma.',
    'And now?',
    'Uma, still.',
  ]);
});

test.each([
  [
    'calls and results of a tool',
    [
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'w1', type: 'function', function: { name: 'weather', arguments: '{"at":"Bern"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'w1', content: 'Rain' },
      { role: 'assistant', content: 'It rains.' },
      { role: 'user', content: 'Still?' },
    ],
    ['weather', '{"at":"Bern"}', 'Rain', 'It rains.', 'Still?'],
  ],
  [
    'a result at the end, as of a forced tool',
    [
      { role: 'user', content: 'Extract.' },
      {
        role: 'assistant',
        tool_calls: [{ id: 'x1', type: 'function', function: { name: 'save', arguments: '{"n":1}' } }],
      },
      { role: 'tool', tool_call_id: 'x1', content: 'n must be 2' },
    ],
    ['{"n":1}', 'Result of save: n must be 2', 'n must be 2'],
  ],
  [
    'parts, a refusal, and rules in the middle',
    [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'One' },
          { type: 'text', text: 'two' },
        ],
      },
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
      { role: 'developer', content: 'Be kind.' },
      { role: 'user', content: 'Please' },
    ],
    ['One\\ntwo', 'No.', 'Be kind.\\n\\nPlease'],
  ],
  [
    'the older form of calls',
    [
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: null, function_call: { name: 'go', arguments: '{"a":1}' } },
      { role: 'function', name: 'go', content: 'gone' },
      { role: 'assistant', content: 'Done.' },
      { role: 'user', content: 'Again' },
    ],
    ['{\\"a\\":1}', 'gone', 'Done.', 'Again'],
  ],
])('the answer knows a history with %s', async (_, messages, known) => {
  await using stage = await openStage(['bo']);
  const client = clientOf(`${stage.url}/api/v1`);
  await client.chat.completions.create({ model: 'bo', messages: messages as ChatCompletionMessageParam[] });
  const text = JSON.stringify(stage.raw('bo')).replaceAll('\\\\"', '"').replaceAll('\\"', '"');
  for (const words of known) expect(text).toContain(words.replaceAll('\\"', '"'));
});

test('pictures of a history go with the new message, and a line names them where they were', async () => {
  await using stage = await openStage(['bo']);
  const client = clientOf(`${stage.url}/api/v1`);
  const { response } = await client.chat.completions
    .create({
      model: 'bo',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look.' },
            { type: 'image_url', image_url: { url: PNG } },
          ],
        },
        { role: 'assistant', content: 'A dot.' },
        { role: 'user', content: 'Which colour?' },
      ],
    })
    .withResponse();
  const { events } = await stage.troupe.events(response.headers.get('x-troupe-conversation') ?? '');
  expect(events.filter(({ kind }) => kind === 'message').map(({ body }) => body)).toMatchObject([
    { content: 'Look.\n\n(file 1)' },
    { content: 'A dot.' },
    { content: 'Which colour?', attachments: [{ type: 'image', name: 'file 1' }] },
    {},
  ]);
});

test('items of an answer name its conversation: it goes on there, as long as nobody has spoken since', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: ['Blue.', 'The sky.', 'Green.'] } });
  const client = clientOf(`${stage.url}/api/v1`);
  const input: ResponseInput = [{ role: 'user', content: 'Which colour?' }];
  const first = await client.responses.create({ model: 'bo', input, store: false });
  const history = [...input, ...first.output] as ResponseInput;
  const second = await client.responses.create({
    model: 'bo',
    input: [...history, { role: 'user', content: 'Why?' }],
  });
  expect(second.conversation).toEqual(first.conversation);
  expect(sent(stage).filter((line) => line.includes('Which colour?'))).toHaveLength(1);
  const branch = await client.responses.create({
    model: 'bo',
    input: [...history, { role: 'user', content: 'Another?' }],
  });
  expect(branch.output_text).toBe('Green.');
  expect(branch.conversation).not.toEqual(first.conversation);
  expect(sent(stage).join('\n')).toMatch(/Which colour\?[^]*Blue\.[^]*Another\?/);
  expect(sent(stage).join('\n')).not.toContain('Why?');
});

test('an item_reference names the newest answer of a conversation, or is refused in words', async () => {
  await using stage = await openStage(['bo']);
  const client = clientOf(`${stage.url}/api/v1`);
  const first = await client.responses.create({ model: 'bo', input: 'One' });
  const id = first.output[0]?.id ?? '';
  const next = (content: string) =>
    client.responses.create({
      model: 'bo',
      input: [
        { role: 'user', content: 'One' },
        { type: 'item_reference', id },
        { role: 'user', content },
      ],
    });
  expect((await next('Two')).conversation).toEqual(first.conversation);
  await expect(next('Three')).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('item_reference'),
  });
});

test('rules of a request come first in a conversation that the base URL names, and once', async () => {
  await using stage = await openStage(['bo']);
  const client = clientOf(`${stage.url}/api/conversations/c1/v1`);
  for (const input of ['One', 'Two'])
    await client.responses.create({ model: 'bo', instructions: 'Be short.', input });
  const { events } = await stage.troupe.events('c1');
  const said = events.filter(({ author }) => author.kind === 'user').map(({ body }) => body);
  expect(said).toEqual([{ content: 'Be short.\n\nOne' }, { content: 'Two' }]);
});

test('a repeated request with a history and a key is one message after one history', async () => {
  await using stage = await openStage(['bo']);
  for (const base of ['v1', 'conversations/c1/v1']) {
    const client = clientOf(`${stage.url}/api/${base}`);
    const headers = { 'idempotency-key': base };
    const ask = () => client.chat.completions.create({ model: 'bo', messages: TOLD }, { headers });
    const [first, second] = [await ask(), await ask()];
    expect(second.id).toBe(first.id);
    expect(second.choices).toEqual(first.choices);
  }
  expect(stage.requests('bo')).toHaveLength(2);
});

test('who may not write what agents say tells the history in their own words', async () => {
  await using stage = await openStage(['bo'], { isKeyed: true });
  const { troupe, url } = stage;
  const ana = { kind: 'user', id: 'ana', name: 'Ana' } as const;
  const keys = [
    await troupe.keys.create({ name: 'phone', scopes: ['read', 'write'], conversations: ['mine-*'] }),
    await troupe.keys.create({ name: 'ana', scopes: ['read', 'write', 'operate'], author: ana }),
  ];
  for (const { secret } of keys) {
    const client = clientOf(`${url}/api/v1`, { apiKey: secret });
    const { response } = await client.chat.completions.create({ model: 'bo', messages: TOLD }).withResponse();
    const { events } = await troupe.events(response.headers.get('x-troupe-conversation') ?? '');
    const messages = events.filter(({ kind }) => kind === 'message');
    expect(messages.map(({ author }) => author.kind)).toEqual(['user', 'agent']);
    expect(messages[0]?.body).toMatchObject({
      content: expect.stringMatching(
        /User: Be short\.\n\nMy name is Uma\.\n\nAssistant: Hello Uma\.\n\nNow:\n\nWhat/,
      ),
    });
  }
});
