import { describe, expect, test } from 'vitest';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { ThoughtSplitter } from '../../src/providers/thoughts.ts';
import { askAiSdk, askOver, blocks, chunk, ended, type Frames, items } from '../support/odd-vendor.ts';

const DATA = '{"city":"Oslo","sun":true}';
const WEATHER: Partial<AgentInput> = {
  tools: [],
  reply: {
    type: 'object',
    properties: { city: { type: 'string' }, sun: { type: 'boolean' } },
    required: ['city', 'sun'],
    additionalProperties: false,
  },
};

/** The answer in pieces of this length. */
function spoken(text: string, length = 1_000): Frames {
  const pieces = text.match(new RegExp(`[\\s\\S]{1,${length}}`, 'g')) ?? [];
  return [...pieces.map((content) => chunk({ content })), chunk({}, 'stop')];
}

describe('a reply as data is read', () => {
  const WRITTEN: Record<string, string> = {
    'in a fence': `\`\`\`json\n${DATA}\n\`\`\``,
    'in a fence of another kind': `~~~\n${DATA}\n~~~`,
    'in a fence of four signs': `\`\`\`\`json\n${DATA}\n\`\`\`\``,
    'in a fence with another name': `\`\`\`jsonc\r\n${DATA}\r\n\`\`\``,
    'in a fence that never ends': `\`\`\`json\n${DATA}`,
    'before the end of a fence that never began': `${DATA}\n\`\`\``,
    'in a fence on one line': `\`\`\`json ${DATA} \`\`\``,
    'in single signs': `\`${DATA}\``,
    'behind words and a fence': `Here is the result:\n\n\`\`\`json\n${DATA}\n\`\`\``,
    'between words': `Here it is:\n\`\`\`json\n${DATA}\n\`\`\`\nLet me know.`,
    'in a fence that never ends, behind words with brackets': `I took [1] and {2}:\n\`\`\`\n${DATA}\n`,
    'bare behind words': `Sure! ${DATA}`,
    'bare before words': `${DATA}\n\nLet me know if {you} need more.`.replace('{you}', 'you'),
    'behind a mark of byte order': `\uFEFF${DATA}`,
    'behind the name of its language': `json\n${DATA}`,
    'behind thoughts in tags': `<think>It is {sunny}.</think>\n\n${DATA}`,
    'behind thoughts whose tag the template wrote': `It is {sunny}.\n</think>\n\n${DATA}`,
    'as the one of two fences that fits': `\`\`\`json\n{"draft":1}\n\`\`\`\nso\n\`\`\`json\n${DATA}\n\`\`\``,
  };
  test.each(Object.entries(WRITTEN))('%s, from one request', async (_, text) => {
    const { answer, requests } = await askOver('chat', [spoken(text)], WEATHER);
    expect(answer.failures).toEqual([]);
    expect(answer.data).toEqual({ city: 'Oslo', sun: true });
    expect(requests).toHaveLength(1);
  });

  test('of which two different ones fit, is asked for again', async () => {
    const two = `\`\`\`json\n${DATA}\n\`\`\`\nor\n\`\`\`json\n{"city":"Rome","sun":true}\n\`\`\``;
    const { answer, requests, lastRequest } = await askOver('chat', [spoken(two), spoken(DATA)], WEATHER);
    expect([answer.data, requests.length]).toEqual([{ city: 'Oslo', sun: true }, 2]);
    expect(lastRequest).toContain('several pieces of JSON that fit');
  });

  test.each<[string, string, RegExp]>([
    ['words', 'It is sunny in Oslo.', /it is no JSON/],
    ['nothing', '', /it is empty/],
    ['half of it', '{"city":"Oslo",', /it is no JSON/],
    ['data that does not fit', '{"city":"Oslo"}', /sun/],
    ['a fence with data that does not fit', '```json\n{"city":"Oslo","sun":"yes"}\n```', /sun/],
  ])('%s is answered with what was wrong', async (_, text, why) => {
    const { answer, requests } = await askOver('chat', [spoken(text), spoken(DATA)], WEATHER);
    expect(answer.data).toEqual({ city: 'Oslo', sun: true });
    const [first, second] = requests.map(
      ({ body }) => (body as { messages: { content: string }[] }).messages,
    );
    expect(second?.length).toBeGreaterThan(first?.length ?? 0);
    expect(second?.at(-1)?.content).toMatch(/Your reply does not fit the schema: /);
    expect(second?.at(-1)?.content).toMatch(why);
    if (text !== '') expect(JSON.stringify(second)).toContain(JSON.stringify(text).slice(1, -1));
  });
});

describe('thoughts in tags are reasoning', () => {
  const TAGS: [string, string, string][] = [
    ['think', '<think>', '</think>'],
    ['thinking', '<thinking>', '</thinking>'],
    ['thought', '<thought>', '</thought>'],
    ['reasoning', '<reasoning>', '</reasoning>'],
    ['in capitals', '<THINK>', '</THINK>'],
    ['of Seed', '<seed:think>', '</seed:think>'],
    ['of Magistral', '[THINK]', '[/THINK]'],
    ['of Kimi', '◁think▷', '◁/think▷'],
    ['of Command A', '<|START_THINKING|>', '<|END_THINKING|>'],
    ['of OpenThinker', '<|begin_of_thought|>', '<|end_of_thought|>'],
  ];
  test.each(TAGS)('%s, in pieces of any length', async (_, open, close) => {
    for (const length of [1, 7, 1_000]) {
      const text = `\n${open}\nWhat do they want?\n${close}\n\nIt is cleaned.`;
      const { answer } = await askOver('chat', [spoken(text, length)]);
      expect(answer.text).toBe('It is cleaned.');
    }
  });

  test('before a call, which runs, and they are kept with its step', async () => {
    const call = { index: 0, id: 'a1', function: { name: 'clean', arguments: '{"only":"a"}' } };
    const frames = [
      chunk({ content: '<think>Only a.</think>\n\n' }),
      chunk({ tool_calls: [call] }),
      chunk({}, 'tool_calls'),
    ];
    const { answer, ran } = await askOver('chat', [frames]);
    expect(ran).toEqual([{ only: 'a' }]);
    const step = answer.events.find(({ kind }) => kind === 'step');
    expect(step?.body).toMatchObject({ content: '', reasoning: { text: 'Only a.', model: 'm' } });
  });

  test('of every API', async () => {
    const text = '<think>Hm.</think>It is cleaned.';
    const messages = blocks([{ block: { type: 'text', text } }], 'end_turn');
    const responses = items([{ type: 'response.output_text.delta', delta: text }]);
    expect((await askOver('messages', [messages])).answer.text).toBe('It is cleaned.');
    expect((await askOver('responses', [responses])).answer.text).toBe('It is cleaned.');
    const parts = [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: text },
      ended('stop'),
    ];
    expect((await askAiSdk([parts])).answer.text).toBe('It is cleaned.');
  });

  test('that fill the answer up to its limit leave nothing said', async () => {
    const frames = [chunk({ content: '<think>What do they' }), chunk({}, 'length')];
    const { answer } = await askOver('chat', [frames]);
    expect(answer.failures[0]?.message).toContain('before a word was said: the model has spent all of it on');
  });

  test.each([
    ['that never end, in a whole answer', '<think>It is cleaned.', 'It is cleaned.'],
    ['further behind', 'It is <think>cleaned</think>.', 'It is <think>cleaned</think>.'],
    ['of which somebody talks', 'Write `</think>` behind it.', 'Write `</think>` behind it.'],
    ['that only begin like them', '<thin clients> are cleaned.', '<thin clients> are cleaned.'],
  ])('%s are words', async (_, text, said) => {
    expect((await askOver('chat', [spoken(text, 5)])).answer.text).toBe(said);
  });

  test('are found in time that grows with their length', () => {
    const splitter = new ThoughtSplitter();
    const text = `<think>${'</thin'.repeat(50_000)}</think>so`;
    const said = Array.from(text, (sign) => splitter.push(sign)).flat();
    expect(said.at(-1)).toEqual({ type: 'text', delta: 'o' });
    expect(splitter.thoughts).toHaveLength(300_000);
  });
});

describe('a call that is written as text', () => {
  const ARGS = '{"only": "/tmp/x"}';
  const TEXTS: [string, string][] = [
    ['Hermes and Qwen', `<tool_call>\n{"name": "clean", "arguments": ${ARGS}}\n</tool_call>`],
    [
      'Qwen Coder',
      '<tool_call>\n<function=clean>\n<parameter=only>\n/tmp/x\n</parameter>\n</function>\n</tool_call>',
    ],
    ['Llama', `<function=clean>${ARGS}</function>`],
    ['Llama, as JSON', `{"name": "clean", "parameters": ${ARGS}}`],
    ['Llama, for Python', `<|python_tag|>{"name": "clean", "parameters": ${ARGS}}`],
    ['Llama 4', '[clean(only="/tmp/x")]'],
    ['Mistral', `[TOOL_CALLS][{"name": "clean", "arguments": ${ARGS}}]`],
    ['DeepSeek', `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>clean\n${ARGS}`],
    [
      'Kimi',
      `<|tool_calls_section_begin|><|tool_call_begin|>functions.clean:0<|tool_call_argument_begin|>${ARGS}`,
    ],
    ['GLM', '<tool_call>clean\n<arg_key>only</arg_key>\n<arg_value>/tmp/x</arg_value>\n</tool_call>'],
    ['gpt-oss', `<|channel|>commentary to=functions.clean <|constrain|>json<|message|>${ARGS}`],
    [
      'Claude',
      '<function_calls>\n<invoke name="clean">\n<parameter name="only">/tmp/x</parameter>\n</invoke>',
    ],
    ['Gemini', '```tool_code\nprint(clean(only="/tmp/x"))\n```'],
    ['Phi', `functools[{"name": "clean", "arguments": ${ARGS}}]`],
    ['ReAct', `I should clean.\nAction: clean\nAction Input: ${ARGS}`],
    ['words before it', `I clean up now.\n\n{"name": "clean", "arguments": ${ARGS}}`],
    ['a fence', `\`\`\`json\n{"tool": "clean", "args": ${ARGS}}\n\`\`\``],
    ["OpenAI's form", `{"type": "function", "function": {"name": "clean", "arguments": ${ARGS}}}`],
  ];
  test.each(TEXTS)('as by %s does not run; model and people are told', async (_, text) => {
    const { answer, ran, requests, lastRequest } = await askOver('chat', [spoken(text)]);
    expect(ran).toEqual([]);
    expect([answer.text, requests.length]).toEqual(['Done.', 2]);
    expect(lastRequest).toContain('holds a call of `clean` written as text');
    expect(answer.events.find(({ kind }) => kind === 'error')?.body).toMatchObject({
      message: expect.stringContaining('does not read the calls of this model') as string,
    });
  });

  test('a second time is the reply: somebody talks about calls', async () => {
    const text = `Write <tool_call>{"name": "clean", "arguments": ${ARGS}}</tool_call>.`;
    const { answer, requests } = await askOver('chat', [spoken(text), spoken(text)]);
    expect([answer.outcome, answer.text, requests.length]).toEqual(['answered', text, 2]);
  });

  test.each([
    [
      'of a tool that the agent does not have',
      `<tool_call>{"name": "sweep", "arguments": ${ARGS}}</tool_call>`,
    ],
    ['that is data about a tool', '{"name": "clean", "files": 3}'],
    ['that only names a tool', 'I would clean it with `clean`.'],
  ])('%s is a reply', async (_, text) => {
    const { answer, requests } = await askOver('chat', [spoken(text)]);
    expect([answer.text, requests.length]).toEqual([text, 1]);
  });
});
