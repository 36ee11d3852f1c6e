import { expect, test } from 'vitest';
import type { Format } from '../src/index.ts';
import { collect, jsonl, keyValueOf, told } from '../../../test/import/collect.ts';

type Fields = Record<string, unknown>;

/** The content of every file below: a person asks, the agent looks with a tool, and answers. */
const TOLD = [
  'message User: where?',
  'step coder: I look',
  'tool.result coder: in a.ts',
  'message coder: in a.ts',
];
const CALL = { id: 'k1', name: 'grep', args: '{"for":"x"}' };

const HUMAN = { type: 'human', content: 'where?' };
const ASKED = {
  type: 'ai',
  content: 'I look',
  tool_calls: [{ name: 'grep', args: { for: 'x' }, id: 'k1', type: 'tool_call' }],
};
const FOUND = { type: 'tool', content: 'in a.ts', tool_call_id: 'k1', name: 'grep' };
const ANSWER = { type: 'ai', content: 'in a.ts' };
const CHAIN = [HUMAN, ASKED, FOUND, ANSWER];
const OPENAI_CALL = { id: 'k1', type: 'function', function: { name: 'grep', arguments: '{"for":"x"}' } };

function dumped(name: string, kwargs: Fields): Fields {
  return { lc: 1, type: 'constructor', id: ['langchain', 'schema', 'messages', name], kwargs };
}

function codex(type: string, payload: Fields): Fields {
  return { timestamp: '2026-06-01T09:00:00.000Z', type, payload };
}

function item(payload: Fields): Fields {
  return codex('response_item', payload);
}

const ITEMS = [
  { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'where?' }] },
  { type: 'reasoning', id: 'rs', summary: [], encrypted_content: 'x' },
  { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look', annotations: [] }] },
  { type: 'function_call', id: 'fc', call_id: 'k1', name: 'grep', arguments: '{"for":"x"}' },
  { type: 'function_call_output', call_id: 'k1', output: 'in a.ts' },
  { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'in a.ts' }] },
];

const UI = {
  user: { id: '1', role: 'user', parts: [{ type: 'text', text: 'where?' }] },
  tool: {
    type: 'tool-grep',
    toolCallId: 'k1',
    state: 'output-available',
    input: { for: 'x' },
    output: 'in a.ts',
  },
};

function ui(...parts: Fields[]): Fields[] {
  return [UI.user, { id: '2', role: 'assistant', parts }];
}

const OPENCODE = [
  {
    info: { id: 'm1', role: 'user', time: { created: 1_780_000_000_000 } },
    parts: [{ type: 'text', text: 'where?' }],
  },
  {
    info: { id: 'm2', role: 'assistant' },
    parts: [
      { type: 'step-start' },
      { type: 'reasoning', text: 'hm' },
      { type: 'text', text: 'I look' },
      {
        type: 'tool',
        callID: 'k1',
        tool: 'grep',
        state: { status: 'completed', input: { for: 'x' }, output: 'in a.ts' },
      },
      { type: 'step-finish', reason: 'tool-calls' },
      { type: 'step-start' },
      { type: 'text', text: 'in a.ts' },
    ],
  },
];

const GEMINI = [
  { id: '1', timestamp: '2026-06-01T09:00:00.000Z', type: 'user', content: [{ text: 'where?' }] },
  {
    id: '2',
    type: 'gemini',
    content: 'I look',
    thoughts: [{ subject: 'hm', description: 'hm' }],
    toolCalls: [
      {
        id: 'k1',
        name: 'grep',
        args: { for: 'x' },
        status: 'success',
        result: [{ functionResponse: { id: 'k1', name: 'grep', response: { output: 'in a.ts' } } }],
      },
    ],
  },
  { id: '3', type: 'gemini', content: 'in a.ts' },
];

test.each<[string, Format, unknown[]]>([
  [
    'messages of the AI SDK',
    'ai-sdk',
    [
      {
        id: 'c',
        messages: ui(
          { type: 'step-start' },
          { type: 'reasoning', text: 'hm' },
          { type: 'text', text: 'I look' },
          UI.tool,
          { type: 'step-start' },
          { type: 'text', text: 'in a.ts' },
        ),
      },
    ],
  ],
  [
    'messages of the AI SDK, without marks of steps',
    'ai-sdk',
    ui(
      { type: 'text', text: 'I look' },
      { ...UI.tool, type: 'dynamic-tool', toolName: 'grep' },
      { type: 'text', text: 'in a.ts' },
    ),
  ],
  [
    'messages of version 4 of the AI SDK',
    'ai-sdk',
    ui(
      { type: 'text', text: 'I look' },
      {
        type: 'tool-invocation',
        toolInvocation: {
          state: 'result',
          toolCallId: 'k1',
          toolName: 'grep',
          args: { for: 'x' },
          result: 'in a.ts',
        },
      },
      { type: 'text', text: 'in a.ts' },
    ),
  ],
  [
    'model messages of the AI SDK',
    'openai',
    [
      { role: 'user', content: 'where?' },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'hm' },
          { type: 'text', text: 'I look' },
          { type: 'tool-call', toolCallId: 'k1', toolName: 'grep', input: { for: 'x' } },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'k1',
            toolName: 'grep',
            output: { type: 'text', value: 'in a.ts' },
          },
        ],
      },
      { role: 'assistant', content: [{ type: 'text', text: 'in a.ts' }] },
    ],
  ],
  ['messages of LangChain', 'langchain', [{ messages: CHAIN }]],
  ['a state of LangGraph', 'langchain', [{ values: { messages: CHAIN }, next: [] }]],
  ['messages of LangChain, one a line', 'langchain', CHAIN],
  ['messages_to_dict of LangChain', 'langchain', [CHAIN.map(({ type, ...data }) => ({ type, data }))]],
  [
    'dumpd of LangChain',
    'langchain',
    [
      [
        dumped('HumanMessage', HUMAN),
        dumped('AIMessage', ASKED),
        dumped('ToolMessage', FOUND),
        dumped('AIMessageChunk', ANSWER),
      ],
    ],
  ],
  [
    'LangChain with the calls in the content too',
    'langchain',
    [
      {
        messages: [
          HUMAN,
          {
            ...ASKED,
            content: [
              { type: 'text', text: 'I look' },
              { type: 'tool_use', id: 'k1', name: 'grep', input: { for: 'x' } },
            ],
          },
          FOUND,
          ANSWER,
        ],
      },
    ],
  ],
  [
    'LangChain with the calls as OpenAI sent them',
    'langchain',
    [
      {
        messages: [
          HUMAN,
          { type: 'ai', content: 'I look', additional_kwargs: { tool_calls: [OPENAI_CALL] } },
          FOUND,
          ANSWER,
        ],
      },
    ],
  ],
  ['a session of opencode', 'opencode', [{ info: { id: 's', title: 't' }, messages: OPENCODE }]],
  ['messages of the server of opencode', 'opencode', OPENCODE],
  ['a chat of Gemini CLI', 'gemini', [{ sessionId: 's', projectHash: 'p', messages: GEMINI }]],
  [
    'contents of the Gemini API',
    'gemini',
    [
      {
        contents: [
          { role: 'user', parts: [{ text: 'where?' }] },
          {
            role: 'model',
            parts: [
              { text: 'hm', thought: true },
              { text: 'I look' },
              { functionCall: { id: 'k1', name: 'grep', args: { for: 'x' } } },
            ],
          },
          {
            role: 'user',
            parts: [{ functionResponse: { id: 'k1', name: 'grep', response: { output: 'in a.ts' } } }],
          },
          { role: 'model', parts: [{ text: 'in a.ts' }] },
        ],
      },
    ],
  ],
  ['items of the Responses API', 'openai', ITEMS],
  [
    'an answer of the Responses API with its input',
    'openai',
    [{ object: 'response', input: 'where?', output: ITEMS.slice(1) }],
  ],
  [
    'a rollout of Codex',
    'codex',
    [
      codex('session_meta', { id: 's' }),
      codex('turn_context', { model: 'm' }),
      codex('event_msg', { type: 'user_message', message: 'where?' }),
      ...ITEMS.map(item),
      codex('event_msg', { type: 'agent_message', message: 'in a.ts' }),
    ],
  ],
  [
    'a rollout of Codex of its first versions',
    'openai',
    [{ id: 's', timestamp: '2025-05-01T00:00:00Z', instructions: null }, ...ITEMS],
  ],
])('%s come in as they were said', async (_what, format, rows) => {
  const { drafts, report } = await collect(jsonl(...rows));
  expect(told(drafts)).toEqual(TOLD);
  expect(drafts[1]?.body).toMatchObject({ calls: [CALL] });
  expect(drafts[2]?.body).toMatchObject({ call: 'k1', name: 'grep', outcome: 'done' });
  expect(report.format).toBe(format);
  expect(keyValueOf(report.repaired)).not.toHaveProperty('orphan_result');
});
