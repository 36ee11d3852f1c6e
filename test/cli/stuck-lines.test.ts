import { expect, test } from 'vitest';
import { stuckLines } from '../../src/cli/commands/overview.ts';
import type { AgentId, ConversationId, TurnId } from '../../src/events/index.ts';

const at = { conversation: 'c' as ConversationId, agent: 'bo' as AgentId };

test('troupe stuck prints each reason with the command or the setting that ends it', () => {
  const turn = 'c:bo:1' as TurnId;
  const silent = { kind: 'model_silent', since: 0, lastWord: null } as const;
  const full = { kind: 'slot_full' as const, since: 0, provider: 'openai', heldBy: [], holders: 1 };
  const lines = stuckLines({
    stuck: [
      { ...at, turn, reason: silent, words: 'no word from the model for 4 min', actions: ['abort'] },
      {
        ...at,
        turn: null,
        reason: full,
        words: 'waits for a slot of openai for 138 s',
        actions: ['raise_limit'],
      },
      {
        ...at,
        turn: null,
        reason: {
          kind: 'unanswered',
          since: 0,
          task: 'q1',
          asks: 'question',
          text: 'Which\u001b[2J?',
          count: 1,
        },
        words: 'waits for an answer of a person for 3 days',
        actions: ['answer'],
      },
    ],
    total: 4,
  });
  expect(lines).toEqual([
    '@bo in c no word from the model for 4 min',
    '  to stop it: POST /api/commands {"command":"abort","turn":"c:bo:1"}',
    '@bo in c waits for a slot of openai for 138 s',
    '  to let more run at once: limits.providers.openai.turns, limits.turnsPerTenant in the agents file',
    '@bo in c waits for an answer of a person for 3 days',
    '  Which\u241b[2J?: troupe answer c q1 TEXT',
    'and 1 more',
  ]);
  expect(stuckLines({ stuck: [], total: 0 })).toEqual(['nothing is stuck']);
});
