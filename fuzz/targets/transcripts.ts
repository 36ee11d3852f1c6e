import { type Format as ForeignFormat, formats } from '../../packages/importers/src/index.ts';

export type Format = ForeignFormat | 'troupe';
export const FORMATS: readonly Format[] = ['troupe', ...formats.keys()];

const AT = '2026-01-01T10:00:00.000Z';

/** A small valid transcript of each format, as a list of records. */
const TRANSCRIPTS: Readonly<Record<Format, readonly unknown[]>> = {
  troupe: [
    { troupe: 1, conversation: 'c1' },
    event('e1', 'message', { content: 'hello' }, 'user'),
    event('e2', 'message', { content: 'as JSON', data: { answer: [1, 2] } }),
    event('e3', 'step', { index: 0, content: '', calls: [{ id: 'k1', name: 'look', args: '{"at":1}' }] }),
    event('e4', 'tool.result', { call: 'k1', name: 'look', outcome: 'done', content: 'seen' }),
    event('e5', 'handoff', {
      summary: { goal: 'go on', done: 'all', openQuestions: ['why?'], artifacts: [] },
    }),
    event('e6', 'turn.failed', { covers: [1], code: 'poison', message: 'no', partial: 'I' }),
  ],
  pi: [
    { type: 'session', id: 's1', timestamp: AT },
    { type: 'message', timestamp: AT, message: { role: 'user', content: [{ type: 'text', text: 'hello' }] } },
    {
      type: 'message',
      timestamp: AT,
      message: {
        role: 'assistant',
        provider: 'anthropic',
        model: 'm',
        stopReason: 'toolUse',
        content: [
          { type: 'thinking', thinking: 'hm', thinkingSignature: 's' },
          { type: 'text', text: 'I look' },
          { type: 'toolCall', id: 'k1', name: 'look', arguments: { at: 1 } },
        ],
      },
    },
    {
      type: 'message',
      timestamp: AT,
      message: {
        role: 'toolResult',
        toolCallId: 'k1',
        toolName: 'look',
        isError: false,
        content: [{ type: 'text', text: 'seen' }],
      },
    },
    {
      type: 'message',
      timestamp: AT,
      message: { role: 'assistant', stopReason: 'aborted', content: 'never m' },
    },
    { type: 'message', id: 'a', parentId: null, message: { role: 'user', content: 'left' } },
    { type: 'message', id: 'b', parentId: null, message: { role: 'user', content: 'anew' } },
    { type: 'branch_summary', id: 'c', parentId: 'b', fromId: 'a', summary: 'It was left.' },
    {
      type: 'compaction',
      id: 'd',
      parentId: 'c',
      summary: 'They spoke.',
      firstKeptEntryId: 'c',
      retainedTail: [{ role: 'user', content: 'anew' }],
    },
    { type: 'message', id: 'e', parentId: 'd', message: { role: 'user', content: 'on' } },
  ],
  'claude-code': [
    {
      type: 'user',
      uuid: 'u1',
      parentUuid: null,
      sessionId: 's',
      timestamp: AT,
      message: { role: 'user', content: 'hello' },
    },
    {
      type: 'assistant',
      uuid: 'u2',
      parentUuid: 'u1',
      timestamp: AT,
      message: {
        id: 'm1',
        model: 'm',
        content: [{ type: 'tool_use', id: 'k1', name: 'look', input: { at: 1 } }],
      },
    },
    {
      type: 'assistant',
      uuid: 'u3',
      parentUuid: 'u2',
      timestamp: AT,
      message: { id: 'm1', model: 'm', content: [{ type: 'tool_use', id: 'k2', name: 'look', input: {} }] },
    },
    {
      type: 'user',
      uuid: 'u4',
      timestamp: AT,
      message: {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'k1', is_error: true, content: [{ type: 'text', text: 'no' }] },
        ],
      },
    },
    { type: 'system', uuid: 'u5', content: 'compacted', timestamp: AT },
    { type: 'queue-operation', operation: 'enqueue', sessionId: 's', timestamp: AT, content: 'wait' },
    { type: 'queue-operation', operation: 'remove', sessionId: 's', timestamp: AT },
    {
      type: 'attachment',
      uuid: 'q1',
      parentUuid: 'u4',
      attachment: { type: 'queued_command', prompt: [{ type: 'text', text: 'wait' }], commandMode: 'prompt' },
    },
    { type: 'user', uuid: 'u7', parentUuid: 'q1', message: { role: 'user', content: 'left' } },
    {
      type: 'user',
      uuid: 'u8',
      parentUuid: 'q1',
      isSidechain: true,
      message: { role: 'user', content: 'side' },
    },
    {
      type: 'system',
      subtype: 'compact_boundary',
      uuid: 'b',
      parentUuid: null,
      logicalParentUuid: 'q1',
      compactMetadata: { preservedSegment: { headUuid: 'u3', tailUuid: 'q1' } },
      content: 'x',
    },
    {
      type: 'user',
      uuid: 'u9',
      parentUuid: 'b',
      isCompactSummary: true,
      message: { content: 'They looked.' },
    },
    { type: 'user', uuid: 'u10', parentUuid: 'q1', message: { role: 'user', content: 'again' } },
    {
      type: 'assistant',
      uuid: 'u6',
      isApiErrorMessage: true,
      timestamp: AT,
      message: { id: 'm2', content: [{ type: 'text', text: 'overloaded' }] },
    },
  ],
  openai: [
    { role: 'system', content: 'be kind' },
    { role: 'user', content: 'hello', created_at: 1_700_000_000 },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'k1', type: 'function', function: { name: 'look', arguments: '{"at":1}' } }],
    },
    { role: 'tool', tool_call_id: 'k1', name: 'look', content: 'seen' },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'done' },
        { type: 'image_url', image_url: { url: 'x' } },
      ],
    },
    {
      messages: [
        { role: 'user', content: 'another' },
        { role: 'assistant', function_call: { name: 'look', arguments: '{}' } },
      ],
    },
  ],
  codex: [
    { timestamp: AT, type: 'session_meta', payload: { id: 's', cwd: '/w' } },
    item({
      type: 'message',
      role: 'user',
      content: [{ type: 'input_text', text: '<environment_context>x' }],
    }),
    item({ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hello' }] }),
    { timestamp: AT, type: 'event_msg', payload: { type: 'user_message', message: 'hello' } },
    item({ type: 'reasoning', summary: [], encrypted_content: 'x' }),
    item({ type: 'function_call', name: 'shell', call_id: 'k1', arguments: '{"command":["ls"]}' }),
    item({ type: 'custom_tool_call', name: 'apply_patch', call_id: 'k2', input: '*** Begin' }),
    item({ type: 'function_call_output', call_id: 'k1', output: '{"output":"a"}' }),
    item({ type: 'custom_tool_call_output', call_id: 'k2', output: { content: 'done', success: true } }),
    { timestamp: AT, type: 'compacted', payload: { message: 'They looked.', replacement_history: [] } },
    item({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'done' }] }),
    { timestamp: AT, type: 'event_msg', payload: { type: 'thread_rolled_back', num_turns: 1 } },
    { timestamp: AT, type: 'event_msg', payload: { type: 'turn_aborted', reason: 'interrupted' } },
    item({ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'again' }] }),
  ],
  opencode: [
    {
      info: { id: 's', title: 't', revert: { messageID: 'm9' } },
      messages: [
        {
          info: { id: 'm1', role: 'user', time: { created: 1_700_000_000_000 } },
          parts: [{ type: 'text', text: 'hello' }],
        },
        {
          info: {
            id: 'm2',
            role: 'assistant',
            error: { name: 'MessageAbortedError', data: { message: 'x' } },
          },
          parts: [
            { type: 'step-start' },
            {
              type: 'tool',
              callID: 'k1',
              tool: 'read',
              state: { status: 'completed', input: { a: 1 }, output: 'seen' },
            },
            { type: 'step-start' },
            { type: 'text', text: 'done' },
          ],
        },
        {
          info: { id: 'm3', role: 'user' },
          parts: [{ type: 'compaction', auto: true, tail_start_id: 'm2' }],
        },
        {
          info: { id: 'm4', role: 'assistant', summary: true },
          parts: [{ type: 'text', text: 'They looked.' }],
        },
        { info: { id: 'm9', role: 'user' }, parts: [{ type: 'text', text: 'undone' }] },
      ],
    },
    { info: { id: 'm1', role: 'user' }, parts: [{ type: 'file', filename: 'a.png' }] },
  ],
  'ai-sdk': [
    {
      messages: [
        {
          id: '1',
          role: 'user',
          parts: [
            { type: 'text', text: 'hello' },
            { type: 'file', mediaType: 'image/png' },
          ],
        },
        {
          id: '2',
          role: 'assistant',
          metadata: { createdAt: AT },
          parts: [
            { type: 'step-start' },
            { type: 'reasoning', text: 'hm' },
            {
              type: 'tool-look',
              toolCallId: 'k1',
              state: 'output-available',
              input: { a: 1 },
              output: { b: 2 },
            },
            { type: 'step-start' },
            { type: 'text', text: 'done' },
          ],
        },
      ],
    },
    {
      id: '3',
      role: 'assistant',
      content: 'old',
      toolInvocations: [{ state: 'result', toolCallId: 'k2', toolName: 'look', args: {}, result: 'seen' }],
    },
  ],
  langchain: [
    {
      messages: [
        { type: 'human', content: 'hello' },
        {
          type: 'ai',
          content: '',
          tool_calls: [{ name: 'look', args: { a: 1 }, id: 'k1', type: 'tool_call' }],
        },
        { type: 'tool', content: 'seen', tool_call_id: 'k1', name: 'look', status: 'error' },
      ],
    },
    {
      type: 'ai',
      data: {
        content: 'hi',
        additional_kwargs: { tool_calls: [{ id: 'k2', function: { name: 'f', arguments: '{}' } }] },
      },
    },
    {
      lc: 1,
      type: 'constructor',
      id: ['langchain', 'schema', 'messages', 'SystemMessage'],
      kwargs: { content: 'be kind' },
    },
  ],
  gemini: [
    {
      sessionId: 's',
      messages: [
        { id: '1', type: 'user', content: 'hello', timestamp: AT },
        {
          id: '2',
          type: 'gemini',
          content: [{ text: 'I look' }],
          toolCalls: [
            {
              id: 'k1',
              name: 'look',
              args: {},
              status: 'success',
              result: [{ functionResponse: { id: 'k1', name: 'look', response: { output: 'seen' } } }],
            },
          ],
        },
      ],
    },
    {
      role: 'model',
      parts: [{ text: 'hm', thought: true }, { functionCall: { name: 'look', args: { a: 1 } } }],
    },
    { role: 'user', parts: [{ functionResponse: { name: 'look', response: { error: 'no' } } }] },
  ],
  chatgpt: [
    {
      id: 'c1',
      current_node: 'n3',
      mapping: {
        n0: { id: 'n0', message: null, parent: null, children: ['n1'] },
        n1: {
          id: 'n1',
          parent: 'n0',
          message: {
            author: { role: 'user' },
            create_time: 1.5,
            content: { content_type: 'text', parts: ['hello'] },
          },
        },
        n2: {
          id: 'n2',
          parent: 'n1',
          message: { author: { role: 'assistant' }, content: { content_type: 'text', parts: ['left'] } },
        },
        n3: {
          id: 'n3',
          parent: 'n1',
          message: {
            id: 'n3',
            author: { role: 'assistant' },
            recipient: 'python',
            content: { content_type: 'code', text: '1+1' },
          },
        },
      },
    },
  ],
  dialogue: [
    {
      messages_display:
        'user: hello\nassistant: I look\nand look\ntool: seen\ntool: Error: no\nassistant: None\nsystem: end',
    },
    { messages_display: 'user: again\nassistant: yes' },
  ],
  locomo: [
    {
      sample_id: 's1',
      conversation: {
        speaker_a: 'Ana',
        session_1_date_time: '1:56 pm on 8 May, 2023',
        session_1: [
          { speaker: 'Ana', dia_id: 'D1:1', text: 'hello' },
          { speaker: 'Ben', dia_id: 'D1:2', text: 'look', img_url: ['x'], blip_caption: 'a dog' },
        ],
        session_2_date_time: '9:00 am on 9 June, 2023',
        session_2: [{ speaker: 'Ben', dia_id: 'D2:1', text: 'bye' }],
      },
    },
  ],
};

export function transcripts(format: Format): readonly unknown[] {
  return TRANSCRIPTS[format];
}

function item(payload: object) {
  return { timestamp: AT, type: 'response_item', payload };
}

function event(id: string, kind: string, body: unknown, who = 'agent') {
  return { id, kind, at: 1_700_000_000_000, author: { kind: who, id: who, name: who }, to: [], body };
}
