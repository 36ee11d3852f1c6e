import { expect, test } from 'vitest';
import type { CompactionView, TurnView } from '../../src/library/projection/model.ts';
import { compactionNow } from '../../web/src/state/compaction-now.ts';
import { hasProblem } from '../../web/src/state/turn-problem.ts';

test.each([
  ['failed', true],
  ['lost', true],
  ['done', false],
] as const)('a turn that went on after a tool was %s is a problem: %s', (outcome, isProblem) => {
  const call = { call: 'x', name: 'look', outcome, seq: 3 };
  const turn = { agent: 'bo', status: 'done', error: null, calls: [call] } as unknown as TurnView;
  expect(hasProblem(turn)).toBe(isProblem);
});

test('pruned tool results are told while they are pruned, and not for ever', () => {
  const pruned = { phase: 'pruned', endedAt: 5 } as CompactionView;
  const started = { phase: 'started', endedAt: null } as CompactionView;
  expect(compactionNow([pruned])).toBeNull();
  expect(compactionNow([started, pruned])).toBe(started);
});
