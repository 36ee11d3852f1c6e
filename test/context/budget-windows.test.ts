import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DEFAULT_WINDOW, limitIn, windowOf } from '../../src/context/budget/windows.ts';

test.each([
  ['gpt-4o', 128_000],
  ['openai/gpt-4o-mini', 128_000],
  ['ft:gpt-4o-mini-2024-07-18:acme::x', 128_000],
  ['gpt-4.1-nano', 1_047_576],
  ['gpt-4', 8_192],
  ['gpt-5-chat-latest', 128_000],
  ['gpt-5.1-codex', 272_000],
  ['gpt-5.5-2026-04-23', 922_000],
  ['gpt-6.2-sol', 922_000],
  ['openai/o3-mini', 200_000],
  ['claude-sonnet-4-5-20250929', 200_000],
  ['claude-sonnet-4-20250514', 200_000],
  ['claude-sonnet-4-5[1m]', 1_000_000],
  ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', 200_000],
  ['anthropic/claude-3.5-sonnet', 200_000],
  ['claude-haiku-4-5@20251001', 200_000],
  ['claude-opus-5-5', 1_000_000],
  ['google/gemini-2.5-pro', 1_048_576],
  ['models/gemini-1.5-pro', 2_097_152],
  ['deepseek/deepseek-chat-v3.1:free', 128_000],
  ['deepseek-v4-pro', 1_000_000],
  ['mistral.mistral-large-2402-v1:0', 32_000],
  ['mistral-medium-3.5', 256_000],
  ['meta.llama3-1-70b-instruct-v1:0', 128_000],
  ['accounts/fireworks/models/llama-v3p1-405b-instruct', 128_000],
  ['llama3:70b', 8_192],
  ['Qwen/Qwen2.5-72B-Instruct', 32_768],
  ['alibaba/qwen3.7-max', 991_000],
])('%s has a window of %i', (model, window) => {
  expect(windowOf(model)?.window).toBe(window);
});

test('a model that is not in the table has no window', () => {
  for (const model of ['', 'scripted', 'my-gpt-4', 'turbo', 'claude'])
    expect(windowOf(model), model).toBeNull();
  expect(DEFAULT_WINDOW).toBe(128_000);
});

test('no name makes the lookup slow or fail', () => {
  fc.assert(
    fc.property(fc.string(), fc.constantFrom('', 'qwen3-', 'claude-', 'gpt-5.'), (tail, head) => {
      const found = windowOf(head + tail);
      expect(found === null || found.maxOutput < found.window * 2).toBe(true);
    }),
  );
});

const OVERFLOWS: [text: string, window: number, asked: number | null][] = [
  [
    "400 This model's maximum context length is 8192 tokens. However, your messages resulted in 8210 tokens. Please reduce the length of the messages.",
    8_192,
    8_210,
  ],
  [
    "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in the completion).",
    131_072,
    131_134,
  ],
  ['prompt is too long: 210000 tokens > 200000 maximum', 200_000, 210_000],
  ['prompt is too long: 210,000 tokens > 200,000 maximum', 200_000, 210_000],
  [
    '400 input length and `max_tokens` exceed context limit: 190000 + 16384 > 200000, decrease input length or `max_tokens` and try again',
    200_000,
    206_384,
  ],
  [
    "This model's maximum context length is 4096 tokens. However, you requested 100 output tokens and your prompt contains at least 4000 input tokens, for a total of at least 4100 tokens.",
    4_096,
    4_100,
  ],
  [
    'request (12345 tokens) exceeds the available context size (8192 tokens), try increasing it',
    8_192,
    12_345,
  ],
  [
    '{"error":{"message":"the request exceeds the available context size","n_prompt_tokens":9000,"n_ctx":8192}}',
    8_192,
    9_000,
  ],
  [
    'The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).',
    1_048_576,
    1_050_000,
  ],
  [
    'Unable to submit request because the input token count is 1196265 but model only supports up to 1048576.',
    1_048_576,
    1_196_265,
  ],
  [
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (130000 of text input, 10000 in the output).",
    131_072,
    140_000,
  ],
  ['Input length 300000 exceeds the maximum allowed input length of 262144 tokens.', 262_144, 300_000],
  [
    'Prompt contains 140000 tokens and 0 draft tokens, too large for model with 131072 maximum context length',
    131_072,
    140_000,
  ],
  ["This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072, 537_812],
  ["The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4_096, 5_000],
  ["Input length (265330) exceeds model's maximum context length (262144).", 262_144, 265_330],
  ['The prompt is too long: 137000, model maximum context length: 131071', 131_071, 137_000],
  ['prompt token count of 140000 exceeds the limit of 128000', 128_000, 140_000],
  ['Your request exceeded model token limit: 262144 (requested: 270000)', 262_144, 270_000],
  [
    'Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough.',
    32_768,
    111_490,
  ],
  [
    'The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5000>= n_ctx: 4096)',
    4_096,
    5_000,
  ],
  [
    '`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` tokens and 512 `max_new_tokens`',
    8_193,
    8_512,
  ],
  ['Range of input length should be [1, 30720]', 30_720, null],
  ['too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292', 4_081, 4_292],
  ['Maximum context length is 128k tokens', 128_000, null],
  ['maximum context length is 1 048 576 tokens', 1_048_576, null],
];

test.each(OVERFLOWS)('the limit is read from: %s', (text, window, asked) => {
  expect(limitIn(text)).toEqual({ window, asked });
});

test.each([
  'the request exceeds the available context size, try increasing it',
  'Your input exceeds the context window of this model. Please adjust your input and try again.',
  'Input is too long for requested model.',
  'prompt too long; exceeded max context length by 2123 tokens',
  'Please reduce the length of the messages or completion.',
  'invalid params, context window exceeds limit (2013)',
  'max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.',
  'max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5',
  'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 36000. maximum context length is 8192',
  'maximum context length is 512 tokens',
  'maximum context length is 99999999999 tokens',
  '',
])('nothing is learnt from: %s', (text) => {
  expect(limitIn(text)).toBeNull();
});

test('a learnt window is always plausible, and a named request is larger', () => {
  const words = fc.constantFrom(
    'maximum context length is ',
    ' tokens > ',
    ' maximum',
    ' + ',
    ' > ',
    'requested ',
    '(',
    ',',
  );
  const numbers = fc.oneof(fc.nat().map(String), fc.bigInt().map(String), fc.constant('128k'));
  fc.assert(
    fc.property(fc.array(fc.oneof(words, numbers, fc.string())), (parts) => {
      const limit = limitIn(parts.join(''));
      if (!limit) return;
      expect(limit.window).toBeGreaterThanOrEqual(1_024);
      expect(limit.window).toBeLessThanOrEqual(20_000_000);
      if (limit.asked !== null) expect(limit.asked).toBeGreaterThan(limit.window);
    }),
    { numRuns: 500 },
  );
});
