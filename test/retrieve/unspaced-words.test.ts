import { expect, test } from 'vitest';
import { wordsOf } from '../../src/context/text/words.ts';

test('a text without spaces is split into pairs, at any length', () => {
  expect(wordsOf('書'.repeat(200_000))).toHaveLength(199_999);
});
