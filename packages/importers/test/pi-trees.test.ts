import { expect, test } from 'vitest';
import { collect, jsonl, keyValueOf, told } from '../../../test/import/collect.ts';

type Fields = Record<string, unknown>;

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

function said(id: string, parentId: string | null, role: 'user' | 'assistant', text: string): Fields {
  return { type: 'message', id, parentId, message: { role, content: [{ type: 'text', text }] } };
}

const PI = { type: 'session', version: 3, id: 's', cwd: '/' };
const TALK = [PI, said('1', null, 'user', 'one'), said('2', '1', 'assistant', 'first')];

test.each<[string, Fields[], string[], number]>([
  [
    'a prompt that was changed',
    [...TALK, said('3', '2', 'user', 'left'), said('4', '2', 'user', 'two')],
    ['one', 'first', 'two'],
    1,
  ],
  ['an answer that was written anew', [...TALK, said('3', '1', 'assistant', 'other')], ['one', 'other'], 1],
  ['the session from its beginning', [...TALK, said('3', null, 'user', 'anew')], ['anew'], 2],
  [
    'a branch that was left with a summary',
    [
      ...TALK,
      said('3', '2', 'user', 'left'),
      { type: 'branch_summary', id: '4', parentId: '1', fromId: '3', summary: 'It failed.' },
      said('5', '4', 'user', 'two'),
    ],
    ['one', 'Summary of a branch of this conversation that was left:\n\nIt failed.', 'two'],
    2,
  ],
  [
    'settings between, on both branches',
    [
      ...TALK,
      { type: 'label', id: '3', parentId: '2' },
      said('4', '3', 'user', 'left'),
      { type: 'model_change', id: '5', parentId: '2' },
      said('6', '5', 'user', 'two'),
    ],
    ['one', 'first', 'two'],
    1,
  ],
  [
    'a parent that is not in the file',
    [...TALK, said('3', 'gone', 'user', 'two')],
    ['one', 'first', 'two'],
    0,
  ],
])('of a pi session only the branch of its last entry comes in: %s', async (_what, rows, words, left) => {
  const read = await wordsOf(rows);
  expect(read.words).toEqual(words);
  expect(read.skipped['other_branch'] ?? 0).toBe(left);
});

test('a compaction of pi covers what its retained tail leaves, and brings the tail where the file has nothing before', async () => {
  const tail = [{ role: 'user', content: 'two' }];
  const compaction = {
    type: 'compaction',
    id: '4',
    parentId: '3',
    summary: 'They counted.',
    retainedTail: tail,
  };
  const whole = await collect(jsonl(...TALK, said('3', '2', 'user', 'two'), compaction));
  expect(whole.items.flatMap(({ summary }) => (summary ? [summary.upTo] : []))).toEqual([2]);
  const begun = await collect(
    jsonl(PI, { ...compaction, parentId: null }, said('5', '4', 'assistant', 'second')),
  );
  expect(told(begun.drafts)).toEqual([
    'message System: Summary of the conversation before:\n\nThey counted.',
    'message User: two',
    'message coder: second',
  ]);
});
