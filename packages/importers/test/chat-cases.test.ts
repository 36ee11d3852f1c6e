import { expect, test } from 'vitest';
import { collect, jsonl, keyValueOf, told } from '../../../test/import/collect.ts';

type Fields = Record<string, unknown>;

function codex(type: string, payload: Fields): Fields {
  return { timestamp: '2026-06-01T09:00:00.000Z', type, payload };
}

function item(payload: Fields): Fields {
  return codex('response_item', payload);
}

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

function node(id: string, parent: string | null, role: string | null, fields: Fields = {}): [string, Fields] {
  const message =
    role === null
      ? null
      : { id, author: { role }, recipient: 'all', create_time: 1_780_000_000.5, ...fields };
  return [id, { id, parent, children: [], message }];
}

const text = (...parts: unknown[]) => ({ content: { content_type: 'text', parts } });

const MAPPING = Object.fromEntries([
  node('root', null, null),
  node('hidden', 'root', 'system', { ...text(''), metadata: { is_visually_hidden_from_conversation: true } }),
  node('u', 'hidden', 'user', text('where?')),
  node('left', 'u', 'assistant', text('who knows')),
  node('think', 'u', 'assistant', { content: { content_type: 'thoughts', thoughts: [] } }),
  node('say', 'think', 'assistant', text('I look')),
  node('run', 'say', 'assistant', {
    recipient: 'grep',
    content: { content_type: 'code', text: '{"for":"x"}' },
  }),
  node('out', 'run', 'tool', {
    author: { role: 'tool', name: 'grep' },
    content: { content_type: 'execution_output', text: 'in a.ts' },
  }),
  node('end', 'out', 'assistant', text('in a.ts')),
]);

test("ChatGPT's export gives a conversation for each, under its own id, with its active branch", async () => {
  const conversation = { title: 't', mapping: MAPPING, current_node: 'end', conversation_id: 'c-1' };
  const { drafts, report } = await collect(
    JSON.stringify([conversation, { ...conversation, conversation_id: 'c-2', current_node: 'left' }]),
    { fileName: 'conversations.json' },
  );
  expect(report).toMatchObject({ format: 'chatgpt', conversations: ['c-1', 'c-2'] });
  expect(told(drafts)).toEqual([
    'message User: where?',
    'message coder: I look',
    'step coder: ',
    'tool.result coder: in a.ts',
    'message coder: in a.ts',
    'message User: where?',
    'message coder: who knows',
  ]);
  expect(keyValueOf(report.skipped)).toMatchObject({ other_branch: 5 });
});

test('a ChatGPT conversation without a current message follows its last one, and hears pictures and spoken words', async () => {
  const parts = [
    { content_type: 'image_asset_pointer' },
    { content_type: 'audio_transcription', text: 'look' },
    'here',
  ];
  const mapping = Object.fromEntries([
    node('a', null, 'user', { content: { content_type: 'multimodal_text', parts } }),
    node('b', 'a', 'assistant', text('yes')),
  ]);
  const { drafts } = await collect(JSON.stringify({ mapping }));
  expect(told(drafts)).toEqual(['message User: [image]\nlook\nhere', 'message coder: yes']);
});

test('turns that Codex undid are left out and counted, and what it says in the place of the person is not theirs', async () => {
  const user = (words: string) =>
    item({ type: 'message', role: 'user', content: [{ type: 'input_text', text: words }] });
  const agent = (words: string) =>
    item({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: words }] });
  const { drafts, report, items } = await collect(
    jsonl(
      user('<environment_context>\n<cwd>/w</cwd></environment_context>'),
      user('one'),
      agent('first'),
      user('left'),
      agent('left too'),
      codex('event_msg', { type: 'thread_rolled_back', num_turns: 1 }),
      user('two'),
      item({ type: 'custom_tool_call', call_id: 'k', name: 'apply_patch', input: '*** Begin Patch' }),
      item({ type: 'local_shell_call', call_id: 'l', action: { type: 'exec', command: ['ls'] } }),
      item({ type: 'custom_tool_call_output', call_id: 'k', output: { content: 'refused', success: false } }),
      codex('compacted', {
        message: 'They counted.',
        replacement_history: [
          { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'two' }] },
        ],
      }),
      codex('event_msg', { type: 'turn_aborted', reason: 'interrupted' }),
    ),
  );
  expect(told(drafts)).toEqual([
    'message System: <environment_context>\n<cwd>/w</cwd></environment_context>',
    'message User: one',
    'message coder: first',
    'message User: two',
    'step coder: ',
    'tool.result coder: refused',
    'turn.aborted coder: ',
  ]);
  expect(drafts[4]?.body).toMatchObject({
    calls: [
      { id: 'k', args: '{"input":"*** Begin Patch"}' },
      { id: 'l', name: 'local_shell' },
    ],
  });
  expect(drafts[5]?.body).toMatchObject({ outcome: 'failed' });
  expect(items.flatMap(({ summary }) => (summary ? [summary.upTo] : []))).toEqual([6]);
  expect(keyValueOf(report.skipped)).toMatchObject({ other_branch: 2 });
});

test('calls of the Responses API that are told twice, and tools of the vendor, come in once', async () => {
  const call = { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' };
  const { drafts } = await collect(
    jsonl(
      { role: 'user', content: 'go' },
      { ...call, status: 'in_progress' },
      { ...call, status: 'completed' },
      { ...call, call_id: 'b' },
      { type: 'function_call_output', call_id: 'a', output: [{ type: 'input_text', text: 'one' }] },
      { type: 'mcp_call', id: 'm', name: 'look', arguments: '{"a":1}', output: 'seen' },
    ),
  );
  expect(told(drafts)).toEqual([
    'message User: go',
    'step coder: ',
    'tool.result coder: one',
    'step coder: ',
    'tool.result coder: seen',
  ]);
  expect(drafts[1]?.body).toMatchObject({ calls: [{ id: 'a' }, { id: 'b' }] });
  expect(drafts[3]?.body).toMatchObject({ calls: [{ id: 'm', name: 'look', args: '{"a":1}' }] });
});

test('of a session of opencode what was undone is left out, its summary covers what it did not keep, and errors end turns', async () => {
  const said = (id: string, role: string, words: string, info: Fields = {}) => ({
    info: { id, role, ...info },
    parts: [{ type: 'text', text: words }],
  });
  const messages = [
    said('m1', 'user', 'one'),
    said('m2', 'assistant', 'first'),
    said('m3', 'user', 'two'),
    { info: { id: 'm4', role: 'user' }, parts: [{ type: 'compaction', auto: true, tail_start_id: 'm3' }] },
    said('m5', 'assistant', 'They counted.', { summary: true }),
    {
      info: { id: 'm6', role: 'user' },
      parts: [
        { type: 'text', text: 'the file', synthetic: true },
        { type: 'text', text: 'three' },
      ],
    },
    {
      info: { id: 'm7', role: 'assistant', error: { name: 'MessageAbortedError', data: { message: 'x' } } },
      parts: [],
    },
    said('m8', 'user', 'undone'),
    said('m9', 'assistant', 'undone too'),
  ];
  const { drafts, items, report } = await collect(
    JSON.stringify({ info: { id: 's', revert: { messageID: 'm8' } }, messages }),
  );
  expect(told(drafts)).toEqual([
    'message User: one',
    'message coder: first',
    'message User: two',
    'message System: the file',
    'message User: three',
    'turn.aborted coder: ',
  ]);
  expect(items.flatMap(({ summary }) => (summary ? [[summary.text, summary.upTo]] : []))).toEqual([
    ['They counted.', 2],
  ]);
  expect(keyValueOf(report.skipped)).toEqual({ metadata: 1, other_branch: 2 });
});

test('a tool of the AI SDK that failed, and one that waits, tell so', async () => {
  const tools = [
    { type: 'tool-f', toolCallId: 'a', state: 'output-error', input: {}, errorText: 'no' },
    { type: 'tool-f', toolCallId: 'b', state: 'input-available', input: {} },
    { type: 'tool-f', toolCallId: 'c', state: 'output-error', rawInput: '{"cut', errorText: 'cut' },
  ];
  const { drafts, report } = await collect(jsonl({ messages: ui(...tools) }));
  expect(drafts.slice(2)).toMatchObject([
    { body: { call: 'a', outcome: 'failed', content: 'no' } },
    { body: { call: 'c', outcome: 'failed' } },
  ]);
  expect(keyValueOf(report.repaired)).toEqual({ missing_result: 1, call_arguments: 1 });
});
