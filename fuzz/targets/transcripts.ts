import type { Format } from '../../src/import/index.ts';

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

function event(id: string, kind: string, body: unknown, who = 'agent') {
  return { id, kind, at: 1_700_000_000_000, author: { kind: who, id: who, name: who }, to: [], body };
}
