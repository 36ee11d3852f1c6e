import { expect, test } from 'vitest';
import type { AgentId, ConversationId, TurnId } from '../../src/events/index.ts';
import { type Doing, STUCK_AFTER, stuckReasons } from '../../src/library/inspect/stuck.ts';
import { createLiveFold } from '../../src/library/facade/live.ts';
import type { LiveNote } from '../../src/events/index.ts';

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

test('a silent model is as silent as before when its call is tried again, until it says a word', () => {
  const fold = createLiveFold(() => 400_000);
  const address = { tenant: 'default', conversation: 'c', agent: 'bo', turn: 'c:bo:1' };
  const enters = (state: string, at: number, more = {}) =>
    fold.note({
      type: 'state',
      ...address,
      state,
      event: 'X',
      at,
      doing: [],
      ...more,
    } as unknown as LiveNote);
  const doing = () => fold.running()[0]?.doing;
  enters('working.streaming', 1_000);
  enters('working.backoff', 301_000, {
    waits: { code: 'provider_unreachable', since: 301_000, next: 302_000 },
  });
  expect(doing()?.kind).toBe('backoff');
  enters('working.streaming', 302_000);
  expect(doing()).toEqual({ kind: 'model', since: 1_000, lastWord: null });
  fold.note({
    type: 'text',
    ...address,
    step: 1,
    round: 1,
    attempt: 2,
    delta: 'Hi',
    offset: 0,
  } as unknown as LiveNote);
  expect(doing()).toMatchObject({ kind: 'model', lastWord: 400_000 });
  enters('working.acting', 401_000);
  enters('working.streaming', 402_000);
  expect(doing()).toEqual({ kind: 'model', since: 402_000, lastWord: null });
});
