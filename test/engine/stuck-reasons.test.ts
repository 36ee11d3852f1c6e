import { expect, test } from 'vitest';
import type { AgentId, ConversationId, TurnId } from '../../src/events/index.ts';
import { type Doing, STUCK_AFTER, stuckReasons } from '../../src/library/inspect/stuck.ts';

const NOW = 10_000_000;
const MINUTE = 60_000;

function told(...doings: Doing[]) {
  const running = doings.map((doing, index) => ({
    conversation: 'c' as ConversationId,
    agent: `a${index}` as AgentId,
    turn: `c:a${index}:1` as TurnId,
    since: NOW - 60 * MINUTE,
    doing,
  }));
  const facts = { running, waiting: [] };
  return stuckReasons(facts, NOW, STUCK_AFTER).map(({ agent, words }) => `${agent}: ${words}`);
}

test('each cause has its threshold and its sentence, the longest first', () => {
  expect(
    told(
      { kind: 'model', since: NOW - 4 * MINUTE, lastWord: null },
      { kind: 'tools', since: NOW - 11 * MINUTE, names: ['copy', 'look'] },
      { kind: 'backoff', since: NOW - 2 * MINUTE, until: NOW + 5_000, code: 'provider_rate_limited' },
    ),
  ).toEqual([
    'a1: has run copy, look for 11 min',
    'a0: no word from the model for 4 min',
    'a2: model calls have failed for 120 s (provider_rate_limited)',
  ]);
});

test('work that goes on is not stuck, however old its turn is', () => {
  expect(
    told(
      { kind: 'model', since: NOW - 30 * MINUTE, lastWord: NOW - 1_000 },
      { kind: 'tools', since: NOW - 9 * MINUTE, names: ['copy'] },
      { kind: 'backoff', since: NOW - 59_000, until: NOW, code: 'provider_rate_limited' },
      { kind: 'runtime', since: NOW - 50 * MINUTE },
    ),
  ).toEqual([]);
});
