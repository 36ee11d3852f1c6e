import { expect, test } from 'vitest';
import { readRecord } from '../../scripts/ratchet.ts';
import { WORDS, countWords, weighWords, wordierThan, wordsOfComments } from '../../scripts/weigh-words.ts';

test('README, documents and comments have no more words than their record says', () => {
  const worse = wordierThan(readRecord(WORDS), weighWords());
  expect(worse, `${worse.join('\n')}\nSay less, or: npm run weigh:words -- --save --raise "why"`).toEqual([]);
});

test('a count may rise by a fiftieth, and no further', () => {
  const record = {
    readme: 900,
    documents: 1_000,
    contributing: 0,
    generated: 5,
    changelog: 0,
    commentsPer1000: 100,
  };
  expect(wordierThan(record, { ...record, documents: 1_020, generated: 900, changelog: 9 })).toEqual([]);
  expect(wordierThan(record, { ...record, documents: 1_021 })).toEqual([
    'documents: 1021, the record says 1000',
  ]);
});

test('words are what a reader meets; comments are blocks and ends of lines, not addresses', () => {
  expect(countWords('| `to` | wakes — agents, 2 at once |')).toBe(6);
  const text = '/** One two.\n * Three. */\nconst a = 1; // four\n// five\nconst url = "http://six/seven";\n';
  expect(wordsOfComments(text)).toBe(5);
});
