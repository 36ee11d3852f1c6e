import { expect, test } from 'vitest';
import { EventDraft } from '../../../src/events/index.ts';
import { collect, jsonl, keyValueOf, told } from '../../../test/import/collect.ts';

const user = (text: string) => ({
  type: 'message',
  message: { role: 'user', content: [{ type: 'text', text }] },
});

test('a pi session becomes messages, steps and results, and its aborted turns end as aborted', async () => {
  const aborted = {
    role: 'assistant',
    stopReason: 'aborted',
    content: [],
    errorMessage: 'Request was aborted',
  };
  const calls = [
    { type: 'thinking', thinking: 'hm', thinkingSignature: 'sig' },
    { type: 'text', text: 'reading' },
    { type: 'toolCall', id: 'a', name: 'read', arguments: { path: 'x' } },
    { type: 'toolCall', id: 'b', name: 'edit', arguments: { path: 'y' }, partialJson: '{"path":"y' },
  ];
  const model = { provider: 'anthropic', model: 'claude' };
  const { drafts, items, report } = await collect(
    jsonl(
      { type: 'session', id: 's', cwd: '/' },
      { ...user('hello'), timestamp: '2025-01-01T00:00:00Z' },
      {
        type: 'message',
        message: { role: 'assistant', stopReason: 'error', errorMessage: 'cut', ...model, content: calls },
      },
      {
        type: 'message',
        message: {
          role: 'toolResult',
          toolCallId: 'a',
          toolName: 'read',
          isError: true,
          content: [
            { type: 'text', text: 'no file' },
            { type: 'image', data: 'AA' },
          ],
        },
      },
      { type: 'message', message: aborted },
      { type: 'message', message: { ...aborted, content: [{ type: 'text', text: 'half' }] } },
    ),
  );
  expect(told(drafts)).toEqual([
    'message User: hello',
    'step coder: reading',
    'turn.failed coder: ',
    'tool.result coder: no file\n[image]',
    'turn.aborted coder: ',
    'turn.aborted coder: half',
  ]);
  expect(drafts[1]?.body).toEqual({
    index: 0,
    content: 'reading',
    calls: [
      { id: 'a', name: 'read', args: '{"path":"x"}' },
      { id: 'b', name: 'edit', args: '{"path":"y"}' },
    ],
    reasoning: { text: 'hm', signature: 'sig', ...model },
  });
  expect(drafts[2]?.body).toEqual({ covers: [], code: 'provider_failed', message: 'cut', partial: '' });
  expect(drafts[3]?.body).toMatchObject({ call: 'a', name: 'read', outcome: 'failed' });
  expect(items[0]?.at).toBe(Date.parse('2025-01-01T00:00:00Z'));
  expect(items[1]?.at).toBeNull();
  expect(keyValueOf(report.repaired)).toEqual({ call_arguments: 1, placeholder: 1, missing_result: 1 });
  expect(report).toMatchObject({ format: 'pi', lines: 6, events: 6, conversations: ['import'] });
});

const CHAT = [
  { role: 'system', content: 'be kind' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'look' },
      { type: 'image_url', image_url: { url: 'x' } },
    ],
  },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{ "a":1 }' } }],
  },
  { role: 'tool', tool_call_id: 'c', content: 'one' },
  { role: 'assistant', content: 'done' },
];
const CHAT_TOLD = [
  'message System: be kind',
  'message User: look\n[image]',
  'step coder: ',
  'tool.result coder: one',
  'message coder: done',
];

test.each([
  ['a bare array of messages', JSON.stringify(CHAT)],
  ['a pretty-printed object with messages', JSON.stringify({ messages: CHAT }, null, 2)],
  ['an array with one trajectory', JSON.stringify([{ traj: CHAT }])],
  ['one message a line', jsonl(...CHAT)],
  [
    'a pretty-printed array of messages, CRLF and a byte order mark',
    `\uFEFF${JSON.stringify(CHAT, null, 2).replaceAll('\n', '\r\n')}`,
  ],
  ['one conversation a line', jsonl({ messages: CHAT })],
])('an OpenAI chat is read from %s', async (_layout, text) => {
  const { drafts, report } = await collect(text, { fileName: '/tmp/My chat.json' });
  expect(told(drafts)).toEqual(CHAT_TOLD);
  expect(report.format).toBe('openai');
  expect(report.conversations).toEqual(['My-chat']);
  expect(drafts[2]?.body).toMatchObject({ calls: [{ id: 'c', name: 'f', args: '{ "a":1 }' }] });
});

test('a file with several trajectories gives several numbered conversations', async () => {
  const text = JSON.stringify([{ traj: CHAT }, { traj: CHAT }], null, 1);
  const { items, report } = await collect(text, { conversation: 'tau' });
  expect(report.conversations).toEqual(['tau-1', 'tau-2']);
  expect(items.map((item) => item.conversation)).toEqual([
    ...CHAT.map(() => 'tau-1'),
    ...CHAT.map(() => 'tau-2'),
  ]);
});

test('the legacy function_call of OpenAI gets an id, and its nameless result finds it', async () => {
  const { drafts, report } = await collect(
    jsonl(
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
      { role: 'function', name: 'f', content: 'r' },
    ),
  );
  expect(drafts[0]?.body).toMatchObject({ calls: [{ id: 'call-1', name: 'f' }] });
  expect(drafts[1]?.body).toMatchObject({ call: 'call-1', name: 'f', content: 'r' });
  expect(keyValueOf(report.repaired)).toEqual({ call_without_id: 1 });
});

test('a Claude Code session keeps its turns, joins the lines of one message, and leaves sidechains out', async () => {
  const line = (type: string, uuid: string, message: unknown, more = {}) => ({
    type,
    uuid,
    parentUuid: null,
    message,
    ...more,
  });
  const part = (content: unknown[]) => ({ id: 'm1', role: 'assistant', model: 'claude', content });
  const { drafts, report } = await collect(
    jsonl(
      { type: 'summary', summary: 'A talk', leafUuid: 'u9' },
      line('user', 'u1', { role: 'user', content: 'hello' }),
      line('assistant', 'u2', part([{ type: 'thinking', thinking: 'hm', signature: 'sig' }])),
      line('assistant', 'u3', part([{ type: 'text', text: 'both' }])),
      line('assistant', 'u4', part([{ type: 'tool_use', id: 'a', name: 'Read', input: { p: 1 } }])),
      line('assistant', 'u5', part([{ type: 'tool_use', id: 'b', name: 'Bash', input: {} }])),
      line('user', 's1', { role: 'user', content: 'for the sub-agent' }, { isSidechain: true }),
      line('user', 'u6', {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'b', content: 'bad', is_error: true },
          { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: 'good' }] },
          { type: 'text', text: 'go on' },
        ],
      }),
      line('user', 'u6', { role: 'user', content: 'a repeated line' }),
      line(
        'assistant',
        'u7',
        { id: 'm2', role: 'assistant', content: [{ type: 'text', text: 'API Error' }] },
        { isApiErrorMessage: true },
      ),
    ),
  );
  expect(told(drafts)).toEqual([
    'message User: hello',
    'step coder: both',
    'tool.result coder: bad',
    'tool.result coder: good',
    'message User: go on',
    'turn.failed coder: ',
  ]);
  expect(drafts[1]?.body).toMatchObject({
    calls: [{ id: 'a', args: '{"p":1}' }, { id: 'b' }],
    reasoning: { text: 'hm', signature: 'sig', provider: 'anthropic', model: 'claude' },
  });
  expect(keyValueOf(report.skipped)).toEqual({ metadata: 1, sidechain: 1, duplicate_line: 1 });
});

test('a dialogue keeps texts of several lines, and each tool text gets a call of its own', async () => {
  const display =
    'user: hi\nthere\nassistant: None\ntool: {"a": 1}\ntool: Error: no\nassistant: well\nuser: bye\nassistant: None';
  const { drafts, report } = await collect(JSON.stringify({ messages_display: display }));
  expect(told(drafts)).toEqual([
    'message User: hi\nthere',
    'step coder: ',
    'tool.result coder: {"a": 1}',
    'tool.result coder: Error: no',
    'message coder: well',
    'message User: bye',
  ]);
  expect(drafts[1]?.body).toMatchObject({ calls: [{ id: 'call-1' }, { id: 'call-2' }] });
  expect(drafts[3]?.body).toMatchObject({ call: 'call-2', outcome: 'failed' });
  expect(report.format).toBe('dialogue');
  expect(keyValueOf(report.skipped)).toEqual({ empty_message: 1 });
});

test('a LoCoMo sample becomes messages of two people, sessions in the order of their numbers', async () => {
  const turn = (speaker: string, text: string, more = {}) => ({ speaker, text, dia_id: 'D1:1', ...more });
  const sample = {
    speaker_a: 'Ana',
    speaker_b: 'Bo Li',
    session_10: [turn('Ana', 'last')],
    session_2_date_time: '12:48 am on 1 February, 2023',
    session_2: [turn('Bo Li', 'first', { blip_caption: 'a dog' })],
    session_3_date_time: 'one day',
  };
  const { drafts, items, report } = await collect(JSON.stringify(sample, null, 2), { fileName: '26.json' });
  expect(told(drafts)).toEqual(['message Bo Li: first\n[image: a dog]', 'message Ana: last']);
  expect(drafts[0]?.author).toEqual({ kind: 'user', id: 'bo-li', name: 'Bo Li' });
  expect(items.map((item) => item.at)).toEqual([Date.UTC(2023, 1, 1, 0, 48), null]);
  expect(report.conversations).toEqual(['26']);
});

test('every draft satisfies the schema of events, and importing again gives the same ids', async () => {
  const once = await collect(JSON.stringify([{ traj: CHAT }, { traj: CHAT }]));
  const again = await collect(JSON.stringify([{ traj: CHAT }, { traj: CHAT }]));
  expect(again.items).toEqual(once.items);
  expect(new Set(once.drafts.map((draft) => draft.id)).size).toBe(10);
  for (const draft of once.drafts) expect(EventDraft.parse(draft)).toEqual(draft);
  const elsewhere = await collect(JSON.stringify(CHAT), { conversation: 'other' });
  expect(once.drafts.map((draft) => draft.id)).not.toContain(elsewhere.drafts[0]?.id);
});

test('the agent, its name and the user are those of the options, and no draft has addressees', async () => {
  const { drafts } = await collect(JSON.stringify(CHAT), {
    agentName: 'Coder',
    user: { id: 'u7', name: 'Ana' },
  });
  expect(drafts[1]?.author).toEqual({ kind: 'user', id: 'u7', name: 'Ana' });
  expect(drafts[4]?.author).toEqual({ kind: 'agent', id: 'coder', name: 'Coder' });
  expect(drafts.flatMap((draft) => draft.to)).toEqual([]);
});
