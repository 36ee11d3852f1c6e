import { expect, test } from 'vitest';
import { wordDiff, withWords } from '../../web/src/parts/detail/word-diff.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';

test('the words that differ are found, and the text is kept as it is', () => {
  const found = wordDiff('High water is at four.', 'Low water is at five, again.');
  expect(found?.before.filter(({ isChanged }) => isChanged).map(({ text }) => text.trim())).toEqual([
    'High',
    'four',
  ]);
  expect(found?.after.map(({ text }) => text).join('')).toBe('Low water is at five, again.');
});

test('texts that have little in common are not marked word by word', () => {
  expect(wordDiff('High water is at four.', 'Nobody has said when it begins.')).toBeNull();
});

test('marks are divided into the lines they belong to', () => {
  const lines = withWords(['-one two', '-three four', '+one 2', '+three four', ' five']);
  const marks = lines.map(
    ({ pieces }) => pieces?.filter(({ isChanged }) => isChanged).map(({ text }) => text) ?? null,
  );
  expect(marks).toEqual([['two'], [], ['2'], [], null]);
});

test('the time for hostile texts is bounded', async () => {
  const texts: [string, string][] = [
    ['a '.repeat(100_000), 'b '.repeat(100_000)],
    ['ab'.repeat(5_000), 'ba '.repeat(5_000)],
    ['x y '.repeat(4_900), 'y x '.repeat(4_900)],
    ['"\\'.repeat(9_000), '\\"'.repeat(9_000)],
  ];
  const cpuMs = await cpuMsOf(() => {
    for (const [before, after] of texts) wordDiff(before, after);
  });
  expect(cpuMs).toBeLessThan(5_000);
});
