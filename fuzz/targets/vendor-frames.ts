import { below, pick, type Random } from '../../sim/random.ts';

/** What a model says in one answer. */
export interface Said {
  texts: readonly string[];
  thoughts: readonly string[];
  calls: readonly { id: string; name: string; args: string }[];
}

export type Frame = Record<string, unknown>;
type Write = (said: Said, random: Random) => Frame[];

const chunk = (delta: unknown, finish: string | null = null, more: object = {}): Frame => ({
  id: 'c',
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason: finish, ...more }],
});
const endOf = ({ calls }: Said) => (calls.length > 0 ? 'tool_calls' : 'stop');
const usage = { choices: [], usage: { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 } };
type Call = Said['calls'][number];
const made = ({ id, name, args }: Call, more: object = {}) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
  ...more,
});
const wholeText = ({ texts }: Said) => texts.join('');
const wholeThought = ({ thoughts }: Said) => thoughts.join('');

function pieces(random: Random, text: string): string[] {
  const at = below(random, text.length + 1);
  return [text.slice(0, at), text.slice(at)];
}

/** Chat completions as vendors, proxies and servers stream them. */
const CHAT: Record<string, Write> = {
  openai: (said, random) => [
    chunk({ role: 'assistant', content: '', refusal: null }),
    ...said.texts.map((content) => chunk({ content })),
    ...said.calls.flatMap((call, index) => [
      chunk({ tool_calls: [{ index, ...made({ ...call, args: '' }) }] }),
      ...pieces(random, call.args).map((args) =>
        chunk({ tool_calls: [{ index, function: { arguments: args } }] }),
      ),
    ]),
    chunk({}, endOf(said)),
    usage,
  ],
  gemini: (said) => [
    ...said.texts.map((content) => chunk({ role: 'assistant', content })),
    ...said.calls.map((call) =>
      chunk({
        role: 'assistant',
        tool_calls: [
          { index: 0, ...made(call, { extra_content: { google: { thought_signature: 'c2ln' } } }) },
        ],
      }),
    ),
    { ...chunk({ role: 'assistant' }, 'stop'), usage: usage.usage },
  ],
  mistral: (said) => [
    chunk({ role: 'assistant', content: '' }),
    ...said.thoughts.map((text) =>
      chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] }),
    ),
    ...said.texts.map((text, index) => chunk({ content: index % 2 === 0 ? text : [{ type: 'text', text }] })),
    chunk(
      { content: '', tool_calls: said.calls.map((call, index) => ({ ...made(call), index })) },
      endOf(said),
    ),
  ],
  openrouter: (said) => [
    ...said.thoughts.map((text) =>
      chunk({
        content: '',
        reasoning: text,
        reasoning_details: [{ type: 'reasoning.text', text, index: 0 }],
      }),
    ),
    ...said.texts.map((content) => chunk({ role: 'assistant', content, reasoning: null })),
    ...said.calls.map((call, index) => chunk({ content: null, tool_calls: [{ index, ...made(call) }] })),
    chunk({ content: '' }, endOf(said), { native_finish_reason: 'completed' }),
    usage,
  ],
  litellm: (said) => [
    ...said.thoughts.map((thinking) =>
      chunk({
        reasoning_content: thinking,
        thinking_blocks: [{ type: 'thinking', thinking, signature: null }],
      }),
    ),
    chunk({ thinking_blocks: [{ type: 'thinking', thinking: '', signature: 's' }] }),
    ...said.texts.map((content) => chunk({ content, provider_specific_fields: null })),
    ...said.calls.map((call, index) =>
      chunk({
        tool_calls: [{ index, ...made(call, { provider_specific_fields: { thought_signature: 's' } }) }],
      }),
    ),
    chunk({ provider_specific_fields: { thought_signatures: ['s'] } }, endOf(said)),
  ],
  kimi: (said, random) => [
    chunk({ role: 'assistant', content: '' }),
    ...said.thoughts.map((reasoning_content) => chunk({ reasoning_content })),
    ...said.texts.map((content) => chunk({ content })),
    ...said.calls.flatMap((call, index) => [
      chunk({ tool_calls: [{ index, ...made({ ...call, args: '' }) }] }),
      ...pieces(random, call.args).map((args) =>
        chunk({ tool_calls: [{ index, function: { arguments: args } }] }),
      ),
    ]),
    chunk({}, endOf(said), { usage: usage.usage }),
  ],
  vllm: (said) => [
    chunk({ role: 'assistant', content: '', reasoning_content: null, tool_calls: [] }),
    ...said.thoughts.map((text) => chunk({ reasoning: text, reasoning_content: text })),
    ...said.texts.map((content) => chunk({ content })),
    ...said.calls.map((call, index) => chunk({ tool_calls: [{ index, ...made(call) }] })),
    chunk({ content: '' }, endOf(said), { stop_reason: null }),
    usage,
  ],
  ollama: (said) => [
    ...said.texts.map((content) => chunk({ role: 'assistant', content })),
    chunk({
      role: 'assistant',
      content: '',
      tool_calls: said.calls.map((call) => ({ index: 0, ...made(call) })),
    }),
    chunk({ role: 'assistant', content: '' }, endOf(said)),
  ],
  perplexity: (said) => {
    const grown = said.texts.map((_, index) => said.texts.slice(0, index + 1).join(''));
    const last = {
      role: 'assistant',
      content: wholeText(said),
      tool_calls: said.calls.map((call) => made(call)),
    };
    return [
      ...said.texts.map((content, index) =>
        chunk({ role: 'assistant', content }, null, {
          message: { role: 'assistant', content: grown[index] },
        }),
      ),
      chunk({ role: 'assistant', content: '' }, endOf(said), { message: last }),
    ];
  },
  'without a stream': (said) => {
    const message = {
      role: 'assistant',
      content: wholeText(said) || null,
      reasoning_content: wholeThought(said),
      tool_calls: said.calls.map((call) => made(call)),
    };
    return [{ object: 'chat.completion', choices: [{ index: 0, message, finish_reason: endOf(said) }] }];
  },
};

const messageItem = (said: Said) => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  content: [{ type: 'output_text', text: wholeText(said) }],
});
const callItem = ({ id, name, args }: Call) => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: id,
  name,
  arguments: args,
});
const outputOf = (said: Said) => [
  ...(said.texts.length > 0 ? [messageItem(said)] : []),
  ...said.calls.map(callItem),
];
const completed = (output: unknown[]): Frame => ({
  type: 'response.completed',
  response: { id: 'r', status: 'completed', output, usage: null },
});
const deltas = (said: Said): Frame[] =>
  said.texts.map((delta) => ({ type: 'response.output_text.delta', delta }));
const done = (item: object): Frame => ({ type: 'response.output_item.done', item });

/** Responses: each part comes in one of several places, or in all. */
const RESPONSES: Record<string, Write> = {
  openai: (said) => [
    ...deltas(said),
    { type: 'response.output_text.done', text: wholeText(said) },
    ...outputOf(said).map(done),
    completed(outputOf(said)),
  ],
  'items without the end': (said) => [...deltas(said), ...outputOf(said).map(done), completed([])],
  'pieces and the end': (said) => [...deltas(said), completed(outputOf(said))],
  'some pieces': (said) => [
    ...deltas(said).slice(0, 1),
    ...outputOf(said).map(done),
    completed(outputOf(said)),
  ],
  'the end alone': (said) => [completed(outputOf(said))],
  'without a stream': (said) => [
    { object: 'response', id: 'r', status: 'completed', output: outputOf(said) },
  ],
};

const stopOf = ({ calls }: Said) => (calls.length > 0 ? 'tool_use' : 'end_turn');
const inputOf = ({ id, name }: Call, input: unknown) => ({ type: 'tool_use', id, name, input });

/** Messages. */
const MESSAGES: Record<string, Write> = {
  anthropic: (said, random) => [
    { type: 'message_start', message: { id: 'm', usage: { input_tokens: 9 } } },
    { type: 'ping' },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    ...said.texts.map((text) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text },
    })),
    { type: 'content_block_stop', index: 0 },
    ...said.calls.flatMap((call, at) => [
      { type: 'content_block_start', index: at + 1, content_block: inputOf(call, {}) },
      ...pieces(random, call.args).map((partial_json) => ({
        type: 'content_block_delta',
        index: at + 1,
        delta: { type: 'input_json_delta', partial_json },
      })),
      { type: 'content_block_stop', index: at + 1 },
    ]),
    { type: 'message_delta', delta: { stop_reason: stopOf(said) }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ],
  'without a stream': (said) => [
    {
      type: 'message',
      id: 'm',
      role: 'assistant',
      content: [
        { type: 'text', text: wholeText(said) },
        ...said.calls.map((call) => inputOf(call, JSON.parse(call.args))),
      ],
      stop_reason: stopOf(said),
      usage: { input_tokens: 9, output_tokens: 9 },
    },
  ],
};

export const VENDORS = { chat: CHAT, responses: RESPONSES, messages: MESSAGES } as const;

const bare = (frame: Frame) => `data: ${JSON.stringify(frame)}\n\n`;
const named = (frame: Frame) =>
  (typeof frame['type'] === 'string' ? `event: ${frame['type']}\n` : '') + bare(frame);

/** The ways in which servers frame what they stream. */
const FRAMINGS: ((frames: readonly Frame[], random: Random) => string)[] = [
  (frames) => frames.map(named).join(''),
  (frames) => frames.map(bare).join(''),
  (frames) => `${frames.map(bare).join('')}data: [DONE]\n\n`,
  (frames) => frames.map(named).join('').slice(0, -1),
  (frames) => frames.map(named).join('').slice(0, -2),
  (frames) => `\ufeff${frames.map(named).join('')}`,
  (frames) => frames.map(named).join('').replaceAll('\n', '\r\n'),
  (frames) => frames.map(named).join('').replaceAll('\n', '\r'),
  (frames) => frames.map((frame) => `: PROCESSING\n\ndata:\n\ndata: ping\n\n${named(frame)}`).join(''),
  (frames) => frames.map((frame) => `id: 1\nretry: 5\n${named(frame)}`).join(''),
  (frames) =>
    frames.map((frame) => `data:${JSON.stringify(frame, null, 1).replaceAll('\n', '\ndata:')}\n\n`).join(''),
  (frames) => frames.map((frame) => `${JSON.stringify(frame)}\n`).join(''),
  (frames) => JSON.stringify(frames),
  (frames) => (frames.length === 1 ? `${JSON.stringify(frames[0], null, 2)}\n` : frames.map(bare).join('')),
];

export function framed(frames: readonly Frame[], random: Random): string {
  return pick(random, FRAMINGS)(frames, random);
}
