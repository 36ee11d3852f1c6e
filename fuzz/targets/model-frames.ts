import { below, pick, type Random } from '../../sim/random.ts';
import { nastyText, nastyValue } from '../nasty.ts';

export const APIS = ['chat', 'responses', 'messages', 'embeddings'] as const;
export type Api = (typeof APIS)[number];

/** A complete answer in the frames of an API, as its vendor would send it. */
export function framesOf(api: Api, random: Random): unknown[] {
  const text = random() < 0.8 ? 'well said ' : nastyText(random);
  const texts = Array.from({ length: below(random, 4) }, () => text);
  const args = random() < 0.7 ? '{"a":1}' : nastyText(random);
  const name = random() < 0.8 ? 'add' : nastyText(random);
  const calls = Array.from({ length: random() < 0.5 ? 0 : 1 + below(random, 3) }, (_, index) => index);
  const answer = { texts, args, name, calls };
  if (api === 'chat') return chat(random, answer);
  if (api === 'responses') return responses(random, answer);
  if (api === 'messages') return messages(random, answer);
  return [
    {
      object: 'list',
      data: [0, 1].map((index) => ({ index, embedding: [0.5, random() < 0.9 ? 1 : nastyValue(random)] })),
    },
  ];
}

interface Answer {
  texts: readonly string[];
  args: string;
  name: string;
  calls: readonly number[];
}

/** A number, in most cases a token count. */
function figure(random: Random): unknown {
  return random() < 0.85 ? below(random, 200) : nastyValue(random);
}

function chat(random: Random, { texts, args, name, calls }: Answer): unknown[] {
  const chunk = (delta: unknown, finish: string | null = null) => ({
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  const usage = {
    prompt_tokens: figure(random),
    completion_tokens: figure(random),
    prompt_tokens_details: { cached_tokens: random() < 0.8 ? 0 : figure(random) },
    completion_tokens_details: { reasoning_tokens: figure(random) },
  };
  const stop = pick(random, ['stop', 'stop', 'tool_calls', 'length', 'content_filter', 'error']);
  return [
    chunk({ role: 'assistant', content: '' }),
    ...(random() < 0.3 ? [chunk({ reasoning_content: 'hm' })] : []),
    ...(random() < 0.1
      ? [chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'x' }] }] })]
      : []),
    ...texts.map((content) => chunk({ content })),
    ...calls.flatMap((index) => [
      chunk({ tool_calls: [{ index, id: `c${index}`, function: { name, arguments: '' } }] }),
      chunk({ tool_calls: [{ index, function: { arguments: args } }] }),
    ]),
    ...(random() < 0.05 ? [chunk({ refusal: 'no' })] : []),
    chunk({}, stop),
    { choices: [], usage },
  ];
}

function responses(random: Random, { texts, args, name, calls }: Answer): unknown[] {
  const item = (given: object) => ({ type: 'response.output_item.done', item: given });
  const usage = {
    input_tokens: figure(random),
    input_tokens_details: { cached_tokens: random() < 0.8 ? 0 : figure(random) },
    output_tokens: figure(random),
    output_tokens_details: { reasoning_tokens: figure(random) },
  };
  const status = pick(random, ['completed', 'completed', 'incomplete', 'failed']);
  const response = {
    status,
    usage,
    incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
    error: status === 'failed' ? { code: 'server_error', message: 'it failed' } : null,
  };
  return [
    { type: 'response.created', response: {} },
    ...(random() < 0.3
      ? [item({ type: 'reasoning', id: 'r', summary: [{ text: 'hm' }], encrypted_content: 'e' })]
      : []),
    ...texts.map((delta) => ({ type: 'response.output_text.delta', delta })),
    ...(texts.length > 0 ? [item({ type: 'message', content: [], phase: 'final' })] : []),
    ...calls.map((index) => item({ type: 'function_call', call_id: `c${index}`, name, arguments: args })),
    { type: `response.${status}`, response },
  ];
}

function messages(random: Random, { texts, args, name, calls }: Answer): unknown[] {
  const start = (index: number, block: object) => ({
    type: 'content_block_start',
    index,
    content_block: block,
  });
  const delta = (index: number, given: object) => ({ type: 'content_block_delta', index, delta: given });
  const usage = {
    input_tokens: figure(random),
    output_tokens: figure(random),
    cache_read_input_tokens: random() < 0.8 ? 0 : figure(random),
  };
  const stop = pick(random, ['end_turn', 'end_turn', 'tool_use', 'max_tokens', 'refusal', 'pause_turn']);
  return [
    { type: 'message_start', message: { usage } },
    ...(random() < 0.3
      ? [
          start(9, { type: 'thinking', thinking: '', signature: '' }),
          delta(9, { type: 'thinking_delta', thinking: 'hm' }),
          delta(9, { type: 'signature_delta', signature: 's' }),
        ]
      : []),
    start(0, { type: 'text', text: '' }),
    ...texts.map((text) => delta(0, { type: 'text_delta', text })),
    ...calls.flatMap((index) => [
      start(index + 1, { type: 'tool_use', id: `c${index}`, name, input: {} }),
      delta(index + 1, { type: 'input_json_delta', partial_json: args }),
    ]),
    { type: 'message_delta', delta: { stop_reason: stop }, usage: { output_tokens: figure(random) } },
    { type: 'message_stop' },
  ];
}
