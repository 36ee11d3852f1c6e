import { describe, expect, test } from 'vitest';
import {
  type Asked,
  askAiSdk,
  askOver,
  blocks,
  chatCalls,
  chunk,
  ended,
  type Frames,
  items,
  type Wire,
} from '../support/odd-vendor.ts';

/** An answer with these words that ends for this reason, by every API. */
function said(wire: Wire, words: string, reason: string): Frames {
  if (wire === 'chat')
    return [
      chunk({ role: 'assistant', content: words === '' ? null : words }),
      chunk({}, reason),
      { choices: [], usage: { prompt_tokens: 300, completion_tokens: 5 } },
    ];
  if (wire === 'messages')
    return blocks(words === '' ? [] : [{ block: { type: 'text', text: words } }], reason);
  const delta = words === '' ? [] : [{ type: 'response.output_text.delta', delta: words }];
  return items(delta, { status: 'incomplete', incomplete_details: { reason } });
}

const text = (delta: string) => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta },
];

function failure({ answer }: Asked) {
  expect(answer.outcome).toBe('failed');
  return answer.failures[0];
}

const REFUSALS: [Wire, string][] = [
  ['chat', 'content_filter'],
  ['chat', 'SAFETY'],
  ['chat', 'RECITATION'],
  ['chat', 'PROHIBITED_CONTENT'],
  ['chat', 'content_filter: PROHIBITED_CONTENT'],
  ['chat', 'BLOCKLIST'],
  ['chat', 'SPII'],
  ['chat', 'sensitive'],
  ['chat', 'ERROR_TOXIC'],
  ['chat', 'guardrail_intervened'],
  ['messages', 'refusal'],
  ['messages', 'content_filtered'],
  ['messages', 'guardrail_intervened'],
  ['responses', 'content_filter'],
];

describe('an answer that a filter has ended', () => {
  test.each(REFUSALS)(
    '%s: %s is a refusal, with nothing said and after half a sentence',
    async (wire, reason) => {
      for (const words of ['', 'The first step is']) {
        const asked = await askOver(wire, [said(wire, words, reason)]);
        expect(failure(asked)).toMatchObject({ code: 'provider_refused' });
        expect(asked.requests).toHaveLength(1);
        expect(asked.answer.text).toBe('');
      }
    },
  );

  test('makes none of its calls', async () => {
    const whole = { index: 0, id: 'a1', function: { name: 'clean', arguments: '{"only":"a"}' } };
    for (const reason of ['content_filter', 'SAFETY']) {
      const asked = await askOver('chat', [chatCalls([whole], reason)]);
      expect(failure(asked)).toMatchObject({ code: 'provider_refused' });
      expect(asked.ran).toEqual([]);
    }
  });

  test.each([
    ['content-filter', 'SAFETY'],
    ['other', 'BLOCKLIST'],
    ['other', 'sensitive'],
  ])('of the AI SDK, %s (%s), is a refusal', async (unified, raw) => {
    const asked = await askAiSdk([[...text('The first step is'), ended(unified, raw)]]);
    expect(failure(asked)).toMatchObject({ code: 'provider_refused' });
  });
});

describe('a call that the vendor could not read', () => {
  const MALFORMED: [Wire, string][] = [
    ['chat', 'function_call_filter: MALFORMED_FUNCTION_CALL'],
    ['chat', 'malformed_function_call'],
    ['chat', 'MALFORMED_FUNCTION_CALL'],
    ['chat', 'UNEXPECTED_TOOL_CALL'],
    ['chat', 'TOO_MANY_TOOL_CALLS'],
    ['chat', 'MALFORMED_RESPONSE'],
    // The server has lost the calls that it announces.
    ['chat', 'tool_calls'],
    ['chat', 'function_call'],
    ['messages', 'malformed_tool_use'],
    ['messages', 'malformed_model_output'],
    ['messages', 'tool_use'],
  ];
  test.each(MALFORMED)('%s: %s is asked again, and the model is told', async (wire, reason) => {
    const asked = await askOver(wire, [said(wire, '', reason)]);
    expect(asked.answer).toMatchObject({ outcome: 'answered', text: 'Done.' });
    expect(asked.requests).toHaveLength(2);
    expect(asked.lastRequest).toContain('could not be read and was not made');
  });

  test('after some words, which are no reply yet', async () => {
    const { answer, lastRequest } = await askOver('chat', [
      said('chat', 'I clean up.', 'MALFORMED_FUNCTION_CALL'),
    ]);
    expect(answer.text).toBe('Done.');
    expect(lastRequest).toContain('I clean up.');
  });

  test.each([
    ['error', 'MALFORMED_FUNCTION_CALL'],
    ['other', 'UNEXPECTED_TOOL_CALL'],
    ['tool-calls', 'tool_calls'],
  ])('of the AI SDK, %s (%s), is asked again', async (unified, raw) => {
    const { answer, lastRequest } = await askAiSdk([[ended(unified, raw)]]);
    expect(answer.text).toBe('Done.');
    expect(lastRequest).toContain('could not be read');
  });

  test('that OpenRouter names only by the word of the vendor behind it', async () => {
    const frames = [chunk({ content: '' }, 'stop', { native_finish_reason: 'MALFORMED_FUNCTION_CALL' })];
    expect((await askOver('chat', [frames])).requests).toHaveLength(2);
  });

  test('each time, fails the turn', async () => {
    const frames = said('chat', '', 'MALFORMED_FUNCTION_CALL');
    const asked = await askOver(
      'chat',
      Array.from({ length: 9 }, () => frames),
    );
    expect(failure(asked)).toMatchObject({ code: 'provider_invalid_reply' });
    expect(asked.requests).toHaveLength(4);
  });

  test('of an agent without tools, says that it has none', async () => {
    const { lastRequest } = await askOver('chat', [said('chat', '', 'UNEXPECTED_TOOL_CALL')], { tools: [] });
    expect(lastRequest).toContain('You have no tools here: answer in words');
  });
});

describe('the limit of output tokens', () => {
  const LIMITS: [Wire, string][] = [
    ['chat', 'length'],
    ['chat', 'MAX_TOKENS'],
    ['chat', 'max_tokens'],
    ['chat', 'model_length'],
    ['chat', 'token_limit'],
    ['messages', 'max_tokens'],
    ['messages', 'length'],
    ['responses', 'max_output_tokens'],
    ['responses', 'max_tokens'],
  ];
  test.each(LIMITS)(
    '%s: %s with nothing said fails by its name, and with words the reply says so',
    async (wire, reason) => {
      const silent = await askOver(wire, [said(wire, '', reason)]);
      expect(failure(silent)?.message).toContain('maxOutputTokens (4096) before a word was said');
      expect(silent.requests).toHaveLength(1);
      const spoken = await askOver(wire, [said(wire, 'The first step is', reason)]);
      expect(spoken.answer).toMatchObject({ outcome: 'answered', text: 'The first step is' });
      expect(spoken.answer.events.at(-1)).toMatchObject({ kind: 'turn.done', body: { cut: 'length' } });
    },
  );

  test('that reasoning has reached, is named with the reasoning', async () => {
    const asked = await askOver('chat', [[chunk({ reasoning_content: 'Hm.' }), chunk({}, 'length')]]);
    expect(failure(asked)?.message).toContain('spent all of it on reasoning; raise maxOutputTokens');
  });
});

describe('an end that nobody knows', () => {
  const UNKNOWN: [Wire, string][] = [
    ['chat', 'OTHER'],
    ['chat', 'repetition_truncation'],
    ['messages', 'model_gave_up'],
    ['responses', 'budget_exhausted'],
  ];
  test.each(UNKNOWN)(
    '%s: %s with nothing said is a failure that names it; with words it is a reply',
    async (wire, reason) => {
      const answers = Array.from({ length: 4 }, () => said(wire, '', reason));
      const asked = await askOver(wire, answers.slice(0, 1));
      expect(asked.answer.text).toBe('Done.');
      expect(asked.answer.events.find(({ kind }) => kind === 'error')?.body).toMatchObject({
        code: 'provider_failed',
        message: `the vendor ended the answer with "${reason}", and nothing was said`,
      });
      const spoken = await askOver(wire, [said(wire, 'It is cleaned.', reason)]);
      expect(spoken.answer).toMatchObject({ outcome: 'answered', text: 'It is cleaned.' });
    },
  );

  test.each([
    ['chat', 'error', 'provider_failed'],
    ['chat', 'network_error', 'provider_failed'],
    ['chat', 'insufficient_system_resource', 'provider_overloaded'],
    ['chat', 'abort', 'provider_truncated'],
    ['messages', 'error', 'provider_failed'],
    ['responses', 'cancelled', 'provider_truncated'],
  ] as const)(
    '%s: %s is a failed call that is made again, also after some words',
    async (wire, reason, code) => {
      const asked = await askOver(wire, [said(wire, 'I clean', reason)]);
      expect(asked.answer.text).toBe('Done.');
      expect(asked.answer.events.find(({ kind }) => kind === 'error')?.body).toMatchObject({ code });
    },
  );

  test.each([
    ['chat', 'eos'],
    ['chat', 'STOP'],
    ['chat', 'end_turn'],
    ['chat', 'COMPLETE'],
    ['messages', 'stop'],
    ['messages', 'stop_sequence'],
  ] as const)('%s: %s is an ordinary end', async (wire, reason) => {
    const { answer, requests } = await askOver(wire, [said(wire, 'It is cleaned.', reason)]);
    expect([answer.text, requests.length]).toEqual(['It is cleaned.', 1]);
  });

  test('"null" is no end', async () => {
    const frames = [chunk({ content: 'It is ' }, 'null'), chunk({ content: 'cleaned.' }, 'stop')];
    expect((await askOver('chat', [frames])).answer.text).toBe('It is cleaned.');
  });
});
