import { expect, test } from 'vitest';
import { collect, jsonl, keyValueOf, told } from '../../../test/import/collect.ts';

const SESSION = { type: 'session', version: 3, id: 's', cwd: '/' };

function said(id: string, role: 'user' | 'assistant', text: string) {
  return { type: 'message', id, message: { role, content: [{ type: 'text', text }] } };
}

function bash(fields: object) {
  const message = { role: 'bashExecution', command: 'npm test', output: '', exitCode: 0, ...fields };
  return { type: 'message', message };
}

test("a person's commands in pi are messages of the person, with output, cuts and exit code", async () => {
  const { drafts, report } = await collect(
    jsonl(
      SESSION,
      bash({ output: 'all well\n' }),
      bash({ command: 'make', output: 'no rule', exitCode: 2, truncated: true, fullOutputPath: '/tmp/o' }),
      bash({ command: 'sleep 9', cancelled: true, exitCode: undefined }),
      bash({ command: 'cat README.md', output: '```sh\nls\n```' }),
    ),
  );
  expect(told(drafts)).toEqual([
    'message User: I ran a command:\n```\n$ npm test\nall well\n```',
    'message User: I ran a command:\n```\n$ make\nno rule\n```\nThe output is cut; all of it: /tmp/o.\nExit code: 2.',
    'message User: I ran a command:\n```\n$ sleep 9\n```\nThere was no output.\nThe command was cancelled.',
    'message User: I ran a command:\n````\n$ cat README.md\n```sh\nls\n```\n````',
  ]);
  expect(report).toMatchObject({ events: 4, kinds: { message: 4 }, repaired: [] });
});

test('a command that pi kept from its model is a notice, which reaches no agent here either', async () => {
  const { drafts } = await collect(jsonl(SESSION, bash({ excludeFromContext: true, output: 'secret' })));
  expect(drafts).toMatchObject([{ kind: 'notice', author: { kind: 'user' }, to: [] }]);
});

test('a compaction of pi is a summary of the events before the first kept entry', async () => {
  const { items, drafts, report } = await collect(
    jsonl(
      SESSION,
      said('a', 'user', 'one'),
      said('b', 'assistant', 'two'),
      { type: 'thinking_level_change', id: 'c', thinkingLevel: 'high' },
      said('d', 'user', 'three'),
      {
        type: 'compaction',
        id: 'e',
        summary: 'They counted to two.',
        firstKeptEntryId: 'c',
        tokensBefore: 900,
        details: { readFiles: ['a.ts', 4], modifiedFiles: ['b.ts'] },
      },
      said('f', 'assistant', 'four'),
      { type: 'compaction', id: 'g', summary: 'They counted to three.', firstKeptEntryId: 'f' },
      said('h', 'user', 'five'),
    ),
  );
  expect(items.flatMap(({ summary }) => summary ?? [])).toEqual([
    {
      number: 1,
      last: drafts[1]?.id,
      upTo: 2,
      text: 'They counted to two.',
      filesRead: ['a.ts'],
      filesModified: ['b.ts'],
    },
    // The first summary is the fourth event.
    expect.objectContaining({ number: 2, last: drafts[2]?.id, upTo: 3 }),
  ]);
  expect(drafts).toHaveLength(5);
  expect(report.kinds).toEqual({ message: 5, compaction: 2 });
  expect(keyValueOf(report.skipped)).toEqual({ metadata: 2 });
});

test('older files of pi name the first kept entry by its number; a file that names none covers everything', async () => {
  const { items } = await collect(
    jsonl(
      { type: 'session', id: 's' },
      said('', 'user', 'one'),
      said('', 'assistant', 'two'),
      { type: 'compaction', summary: 'One.', firstKeptEntryIndex: 2 },
      said('', 'user', 'three'),
      { type: 'compaction', summary: 'All.', firstKeptEntryId: 'gone' },
    ),
  );
  expect(items.flatMap(({ summary }) => (summary ? [summary.upTo] : []))).toEqual([1, 4]);
});

test('a compaction that is empty or covers nothing new is left out and counted', async () => {
  const { items, report } = await collect(
    jsonl(
      SESSION,
      said('a', 'user', 'one'),
      { type: 'compaction', summary: ' ' },
      { type: 'compaction', summary: 'One.' },
      { type: 'compaction', summary: 'One again.', firstKeptEntryId: 'a' },
    ),
  );
  expect(items.filter(({ summary }) => summary)).toHaveLength(1);
  expect(keyValueOf(report.skipped)).toEqual({ metadata: 1, summary: 2 });
});

test('summaries of left branches and words of extensions come from the system, states and names are settings', async () => {
  const { drafts, report } = await collect(
    jsonl(
      SESSION,
      { type: 'branch_summary', fromId: 'x', summary: 'It led nowhere.' },
      { type: 'custom_message', customType: 'e', content: 'Remember the tests.', display: false },
      { type: 'message', message: { role: 'custom', content: [{ type: 'text', text: 'as a message' }] } },
      { type: 'message', message: { role: 'hookMessage', content: 'by its former name' } },
      { type: 'message', message: { role: 'branchSummary', summary: 'Neither did this.' } },
      { type: 'custom', customType: 'e', data: {} },
      { type: 'label', targetId: 'x', label: 'here' },
      { type: 'session_info', name: 'A name' },
    ),
  );
  expect(told(drafts)).toEqual([
    'message System: Summary of a branch of this conversation that was left:\n\nIt led nowhere.',
    'message System: Remember the tests.',
    'message System: as a message',
    'message System: by its former name',
    'message System: Summary of a branch of this conversation that was left:\n\nNeither did this.',
  ]);
  expect(keyValueOf(report.skipped)).toEqual({ metadata: 4 });
});

test('a compaction of Claude Code is a summary of everything before it, and its own lines are not the person', async () => {
  const line = (fields: object) => ({ isSidechain: false, sessionId: 's', ...fields });
  const { items, drafts, report } = await collect(
    jsonl(
      line({ type: 'user', uuid: '1', message: { role: 'user', content: 'one' } }),
      line({ type: 'assistant', uuid: '2', message: { id: 'm', role: 'assistant', content: 'two' } }),
      line({ type: 'system', subtype: 'compact_boundary', uuid: '3', content: 'Conversation compacted' }),
      line({
        type: 'user',
        uuid: '4',
        isCompactSummary: true,
        message: { role: 'user', content: 'They counted.' },
      }),
      line({ type: 'user', uuid: '5', isMeta: true, message: { role: 'user', content: 'Caveat: …' } }),
      line({ type: 'user', uuid: '6', message: { role: 'user', content: 'three' } }),
      { type: 'summary', summary: 'The title of the session', leafUuid: '6' },
    ),
  );
  expect(items.map(({ summary }) => summary?.upTo ?? null)).toEqual([null, null, 2, null, null]);
  expect(told(drafts)).toEqual([
    'message User: one',
    'message coder: two',
    'message System: Caveat: …',
    'message User: three',
  ]);
  expect(keyValueOf(report.skipped)).toEqual({ metadata: 2 });
});
