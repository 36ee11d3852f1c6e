import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Row } from '../../src/library/projection/model.ts';
import { foldNoise, isFold } from '../../web/src/state/fold-noise.ts';

const LEVELS = ['talk', 'work', 'noise', 'problem'] as const;
const rowsOf = (levels: readonly Row['level'][]): Row[] =>
  levels.map((level, index) => ({
    seq: index + 1,
    at: 0,
    kind: 'message',
    level,
    author: 'Ana',
    isAgent: false,
    agent: null,
    to: [],
    turn: null,
    summary: '',
  }));

test('consecutive noise is one line, and every event is in exactly one line', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...LEVELS), { maxLength: 60 }), (levels) => {
      const lines = foldNoise(rowsOf(levels));
      const held = lines.flatMap((line) =>
        isFold(line) ? Array.from({ length: line.count }, (_, index) => line.seq + index) : [line.seq],
      );
      expect(held).toEqual(levels.map((_, index) => index + 1));
      for (const line of lines) if (isFold(line)) expect(line.last - line.seq + 1).toBe(line.count);
    }),
  );
});

test('a single noise event is not folded, and problems are never folded', () => {
  expect(foldNoise(rowsOf(['talk', 'noise', 'talk'])).some(isFold)).toBe(false);
  expect(foldNoise(rowsOf(['noise', 'problem', 'noise'])).some(isFold)).toBe(false);
});

test('an opened fold stays open', () => {
  const rows = rowsOf(['talk', 'noise', 'noise', 'noise']);
  expect(foldNoise(rows)).toHaveLength(2);
  expect(foldNoise(rows, (seq) => seq === 2)).toHaveLength(4);
});
