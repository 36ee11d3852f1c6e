import { expect, test } from 'vitest';
import { wordsOf } from '../../src/context/retrieve/words.ts';

test('a text of any length without spaces is cut into pairs', () => {
  expect(wordsOf('書'.repeat(200_000))).toHaveLength(199_999);
});
