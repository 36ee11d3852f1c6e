import { expect, test } from 'vitest';
import { cutPointFor, NO_PLAN } from '../../src/context/compaction/plan.ts';
import { beginTurn, DEFAULT_POLICY, roomOf, scaledPolicy } from '../../src/context/index.ts';
import type { AgentId, EventId, TurnId } from '../../src/events/index.ts';
import { logged, viewOf } from '../support/log-player.ts';

function message(seq: number, words: number) {
  return logged(
    {
      id: `m${seq}` as EventId,
      author: { kind: 'user', id: 'ana', name: 'Ana' },
      to: ['bo' as AgentId],
      kind: 'message',
      body: { content: 'harbour '.repeat(words) },
    },
    seq,
  );
}

/** A context window of 1,024 to 1,200 tokens leaves this much beside the answer. */
test.each([512, 560, 590])(
  'a summary is possible with %i available tokens and a long fixed part',
  (available) => {
    const view = viewOf(
      'bo',
      [1, 2, 3].map((seq) => message(seq, seq === 3 ? 2 : 60)),
    );
    beginTurn(view, { id: 't' as TurnId, upTo: 3, inputs: [3], live: {}, join: 'full', baseline: 'b' });
    const policy = scaledPolicy(DEFAULT_POLICY, available);
    // The fixed part exceeds the target and leaves room for the smallest summary.
    const fixed = Math.floor(available * 0.95) - 200;
    const room = roomOf({ available, fixed, ratio: 1, reason: 'over_budget' }, policy);
    expect(cutPointFor(view, NO_PLAN, room, policy)).toMatchObject({ budget: 150 });
  },
);
