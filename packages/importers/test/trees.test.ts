import { expect, test } from 'vitest';
import { collect, jsonl, keyValueOf, told } from '../../../test/import/collect.ts';

const SESSION = { isSidechain: false, sessionId: 's', timestamp: '2026-06-01T09:00:00.000Z' };
type Fields = Record<string, unknown>;

function line(type: string, uuid: string, parentUuid: string | null | undefined, fields: Fields): Fields {
  return { ...SESSION, type, uuid, ...(parentUuid !== undefined && { parentUuid }), ...fields };
}

function asks(uuid: string, parent: string | null | undefined, content: unknown, more: Fields = {}): Fields {
  return line('user', uuid, parent, { message: { role: 'user', content }, ...more });
}

function answers(
  uuid: string,
  parent: string | null | undefined,
  content: unknown,
  id = `m-${uuid}`,
): Fields {
  return line('assistant', uuid, parent, { message: { id, role: 'assistant', model: 'claude', content } });
}

const call = (id: string) => [{ type: 'tool_use', id, name: 'Bash', input: {} }];
const result = (id: string, text: string) => [{ type: 'tool_result', tool_use_id: id, content: text }];
const note = (type: string, uuid: string, parent: string | null) => line(type, uuid, parent, {});

/** What was said, without its authors. */
async function wordsOf(
  rows: readonly unknown[],
): Promise<{ words: string[]; skipped: Record<string, number> }> {
  const { drafts, report } = await collect(jsonl(...rows));
  return {
    words: told(drafts).map((each) => each.replace(/^.*?: /, '')),
    skipped: keyValueOf(report.skipped),
  };
}

const ONE = asks('u1', null, 'one');

test.each<[string, Fields[], string[], Record<string, number>]>([
  [
    'a prompt that was rewound, with its answer',
    [
      ONE,
      answers('a1', 'u1', 'first'),
      asks('u2', 'a1', 'left'),
      answers('a2', 'u2', 'left too'),
      asks('u3', 'a1', 'two'),
      answers('a3', 'u3', 'second'),
    ],
    ['one', 'first', 'two', 'second'],
    { other_branch: 2 },
  ],
  [
    'prompts that were changed twice, one of them with tools',
    [
      ONE,
      answers('a1', 'u1', 'first'),
      asks('u2', 'a1', 'left'),
      answers('a2', 'u2', call('t')),
      asks('r2', 'a2', result('t', 'left')),
      asks('u3', 'a1', 'left too'),
      asks('u4', 'a1', 'two'),
      answers('a4', 'u4', 'second'),
    ],
    ['one', 'first', 'two', 'second'],
    { other_branch: 4 },
  ],
  [
    'the first prompt, which begins the session anew',
    [asks('u0', null, 'left'), answers('a0', 'u0', 'left too'), ONE, answers('a1', 'u1', 'first')],
    ['one', 'first'],
    { other_branch: 2 },
  ],
  [
    'an answer that was written anew',
    [ONE, answers('a0', 'u1', 'left'), answers('a1', 'u1', 'first'), asks('u2', 'a1', 'two')],
    ['one', 'first', 'two'],
    { other_branch: 1 },
  ],
  [
    'a rewound prompt behind notes of hooks, and words said on its branch',
    [
      ONE,
      answers('a1', 'u1', 'first'),
      note('progress', 'p1', 'a1'),
      asks('u2', 'p1', 'left'),
      line('attachment', 'q1', 'u2', { attachment: { type: 'queued_command', prompt: 'left too' } }),
      note('attachment', 'p2', 'a1'),
      asks('u3', 'p2', 'two'),
    ],
    ['one', 'first', 'two'],
    { other_branch: 2, metadata: 2 },
  ],
])('of a Claude Code session only the active branch comes in: %s', async (_what, rows, words, skipped) => {
  expect(await wordsOf(rows)).toEqual({ words, skipped });
});

test.each<[string, Fields[], string[]]>([
  [
    'parallel calls, whose results follow each its own call',
    [
      ONE,
      answers('a1', 'u1', call('t1'), 'm'),
      answers('a2', 'a1', call('t2'), 'm'),
      asks('r1', 'a1', result('t1', 'r one')),
      asks('r2', 'a2', result('t2', 'r two')),
      answers('a3', 'r2', 'done'),
    ],
    ['one', '', 'r one', 'r two', 'done'],
  ],
  [
    'a chain that refers to a line which was never written',
    [ONE, answers('a1', 'u1', 'first'), asks('u2', 'gone', 'two'), answers('a2', 'u2', 'second')],
    ['one', 'first', 'two', 'second'],
  ],
  [
    'work that goes on from a note of a hook, and work that goes on from the result',
    [
      ONE,
      answers('a1', 'u1', call('t1')),
      note('progress', 'p1', 'a1'),
      asks('r1', 'a1', result('t1', 'r one')),
      answers('a2', 'r1', 'first'),
      answers('a3', 'p1', 'second'),
    ],
    ['one', '', 'r one', 'first', 'second'],
  ],
  [
    'a compaction, which begins a new chain',
    [
      ONE,
      answers('a1', 'u1', 'first'),
      line('system', 'b', null, { subtype: 'compact_boundary', logicalParentUuid: 'a1', content: 'x' }),
      asks('s', 'b', 'Summary.', { isCompactSummary: true }),
      asks('u2', 's', 'two'),
    ],
    ['one', 'first', 'two'],
  ],
  [
    'a compaction that names a line of another file, and a line that names itself',
    [
      ONE,
      answers('a1', 'u1', 'first'),
      line('system', 'b', null, { subtype: 'compact_boundary', logicalParentUuid: 'gone', content: 'x' }),
      asks('s', 'b', 'Summary.', { isCompactSummary: true }),
      asks('u2', 'u2', 'two'),
    ],
    ['one', 'first', 'two'],
  ],
  [
    'a list without any parents, as other programs write it',
    [ONE, answers('a1', null, 'first'), asks('u2', null, 'two'), answers('a2', null, 'second')],
    ['one', 'first', 'two', 'second'],
  ],
  [
    'two sessions in one file',
    [ONE, answers('a1', 'u1', 'first'), { ...asks('u2', null, 'two'), sessionId: 't' }],
    ['one', 'first', 'two'],
  ],
  [
    'lines that come before their parents',
    [answers('a1', 'u1', 'first'), ONE, asks('u2', 'a1', 'two')],
    ['first', 'one', 'two'],
  ],
  [
    'two lines that name each other',
    [asks('u1', 'u2', 'one'), asks('u2', 'u1', 'two'), answers('a1', 'u2', 'first')],
    ['one', 'two', 'first'],
  ],
  [
    'copies of older lines, which a second compaction appends',
    [
      ONE,
      answers('a1', 'u1', 'first'),
      asks('u2', 'a1', 'two'),
      ONE,
      answers('a1', 'u1', 'first'),
      note('system', 'h', 'a1'),
      line('system', 'b', null, { subtype: 'compact_boundary', logicalParentUuid: 'h', content: 'x' }),
      asks('s', 'b', 'Summary.', { isCompactSummary: true }),
      asks('u3', 's', 'three'),
    ],
    ['one', 'first', 'two', 'three'],
  ],
])(
  'what looks like a branch of a Claude Code session and is none comes in: %s',
  async (_what, rows, words) => {
    const read = await wordsOf(rows);
    expect(read.words).toEqual(words);
    expect(read.skipped).not.toHaveProperty('other_branch');
  },
);

test('a compaction of Claude Code covers what is before the segment that it kept', async () => {
  const boundary = (compactMetadata: Fields) =>
    line('system', 'b', null, { subtype: 'compact_boundary', compactMetadata, content: 'x' });
  for (const meta of [
    { preservedSegment: { headUuid: 'u2', anchorUuid: 's', tailUuid: 'a2' } },
    { preservedMessages: { anchorUuid: 's', uuids: ['u2', 'a2'] } },
  ]) {
    const rows = [
      ONE,
      answers('a1', 'u1', 'first'),
      asks('u2', 'a1', 'two'),
      answers('a2', 'u2', 'second'),
      boundary(meta),
      asks('s', 'b', 'They counted.', { isCompactSummary: true }),
      asks('u3', 'a2', 'three'),
    ];
    const { items } = await collect(jsonl(...rows));
    expect(items.flatMap(({ summary }) => (summary ? [[summary.text, summary.upTo]] : []))).toEqual([
      ['They counted.', 2],
    ]);
  }
});

test('a session that begins with the summary of another file keeps it as a message', async () => {
  const rows = [
    line('system', 'b', null, { subtype: 'compact_boundary', content: 'x' }),
    asks('s', 'b', 'They counted.', { isCompactSummary: true }),
    asks('u1', 's', 'three'),
  ];
  expect((await wordsOf(rows)).words).toEqual([
    'Summary of the conversation before:\n\nThey counted.',
    'three',
  ]);
});

test('a block that Claude Code tells again in the same message comes in once', async () => {
  const text = { type: 'text', text: 'I look' };
  const rows = [
    ONE,
    answers('a1', 'u1', [text], 'm'),
    answers('a2', 'a1', [text, ...call('t')], 'm'),
    answers('a3', 'a2', call('t'), 'm'),
    asks('r', 'a3', result('t', 'seen')),
  ];
  const { drafts, report } = await collect(jsonl(...rows));
  expect(told(drafts)).toEqual(['message User: one', 'step coder: I look', 'tool.result coder: seen']);
  expect(drafts[1]?.body).toMatchObject({ calls: [{ id: 't' }] });
  expect(keyValueOf(report.skipped)).toEqual({ told_twice: 2 });
});

test('a file of side conversations alone is read as conversations, one for each', async () => {
  const side = { isSidechain: true };
  const one = [
    asks('u1', null, 'find it', { ...side, agentId: 'x' }),
    { ...answers('a1', 'u1', 'here'), ...side, agentId: 'x' },
  ];
  const alone = await collect(jsonl(...one), { conversation: 'c' });
  expect(told(alone.drafts)).toEqual(['message User: find it', 'message coder: here']);
  expect(alone.report).toMatchObject({ conversations: ['c'], skipped: [] });
  const two = [
    asks('u2', null, 'and that', { ...side, agentId: 'y' }),
    { type: 'summary', summary: 'A title', leafUuid: 'u2' },
  ];
  const both = await collect(jsonl(...one, ...two), { conversation: 'c' });
  expect(both.report).toMatchObject({ conversations: ['c-1', 'c-2'], events: 3 });
});

const enqueued = (content: string) => ({
  type: 'queue-operation',
  operation: 'enqueue',
  sessionId: 's',
  content,
});
const operation = (name: string, content?: string) => ({
  type: 'queue-operation',
  operation: name,
  sessionId: 's',
  ...(content && { content }),
});
const queued = (prompt: unknown, more: Fields = {}) => ({
  ...SESSION,
  type: 'attachment',
  attachment: { type: 'queued_command', prompt, commandMode: 'prompt', ...more },
});
const WORK = [ONE, answers('a1', 'u1', call('t'))];

test.each<[string, unknown[], string[]]>([
  ['taken in at a step', [enqueued('wait'), operation('remove'), queued('wait')], ['User: wait']],
  [
    'as parts, with a picture',
    [
      enqueued('wait'),
      operation('remove', 'wait'),
      queued([{ type: 'text', text: 'wait' }, { type: 'image' }]),
    ],
    ['User: wait\n[image]'],
  ],
  ['sent after the turn', [enqueued('wait'), operation('dequeue'), asks('u2', 'a1', 'wait')], ['User: wait']],
  ['written in no other line', [enqueued('wait'), operation('dequeue')], ['User: wait']],
  [
    'the same words twice',
    [
      enqueued('go on'),
      operation('remove'),
      queued('go on'),
      enqueued('go on'),
      operation('dequeue'),
      answers('a2', 'a1', 'well'),
      asks('u2', 'a2', 'go on'),
    ],
    ['User: go on', 'coder: well', 'User: go on'],
  ],
  ['told by a user line beside the attachment', [queued('wait'), asks('u2', 'a1', 'wait')], ['User: wait']],
  [
    'a notice of a task, and words of another session',
    [queued('done', { commandMode: 'task-notification' }), queued('hi', { origin: { kind: 'peer' } })],
    ['System: done', 'System: hi'],
  ],
])('words typed while Claude Code worked come in once: %s', async (_what, rows, words) => {
  const { drafts } = await collect(jsonl(...WORK, ...rows));
  expect(
    told(drafts)
      .slice(2)
      .map((each) => each.replace(/^message /, '')),
  ).toEqual(words);
});

test('queued words that a person took back are left out and counted', async () => {
  const rows = [
    enqueued('sent'),
    operation('dequeue'),
    enqueued('wrong'),
    operation('popAll'),
    asks('u2', 'a1', 'sent'),
    asks('u3', 'u2', 'right'),
  ];
  const { words, skipped } = await wordsOf([...WORK, ...rows]);
  expect(words.slice(2)).toEqual(['sent', 'right']);
  expect(skipped).toMatchObject({ taken_back: 1 });
});
