import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countTokens } from '../../src/context/budget/tokens.ts';
import type { PromptMessage, PromptRecord } from '../../src/events/index.ts';
import { showWaiting } from '../../src/context/index.ts';
import { promptOf, viewOf } from '../support/log-player.ts';
import { AGENTS, type Move, moves, RandomRun } from '../support/random-run.ts';
import { ASSISTANT, HAS_DATA, realLogs } from '../support/real-logs.ts';

/** A provider adds about four tokens to every message. */
const FRAME = 4;

test('the tokens of the layers add up to the total, and the free tokens follow from the estimate', () => {
  fc.assert(
    fc.property(moves, (all) => {
      for (const { prompt } of new RandomRun().play(all).player.sent) {
        const { layers, tokens } = prompt;
        expect(layers.reduce((sum, layer) => sum + layer.tokens, 0)).toBe(tokens.total);
        expect(layers.every((layer) => layer.tokens >= 0)).toBe(true);
        expect(tokens.free).toBe(tokens.window - tokens.reserved - tokens.estimate);
        expect(tokens.estimate).toBeGreaterThanOrEqual(tokens.total);
      }
    }),
  );
});

test('the total is within 15 % of the count of the rendered text', () => {
  const errors: number[] = [];
  fc.assert(
    fc.property(moves, (all) => {
      for (const { prompt } of new RandomRun().play(all).player.sent) errors.push(errorOf(prompt));
    }),
    { numRuns: 200 },
  );
  expect(errors.length).toBeGreaterThan(0);
  expect(Math.max(...errors.map(Math.abs))).toBeLessThan(0.15);
});

test.each(['handoff', 'fail'] as const)('what Troupe writes at the head of every %s counts', (kind) => {
  const all = AGENTS.flatMap((agent) =>
    AGENTS.map((to): Move =>
      kind === 'fail' ? { do: 'fail', agent, text: 'x' } : { do: 'handoff', agent, to },
    ),
  );
  for (const reader of AGENTS) {
    const { player } = new RandomRun().play([
      ...Array.from({ length: 5 }, () => all).flat(),
      { do: 'human', who: 0, to: [reader], text: 'x' },
      { do: 'turn', agent: reader, turn: { before: [], steps: [], ending: 'reply', text: 'x', during: [] } },
    ]);
    expect(player.sent).toHaveLength(1);
    for (const { prompt } of player.sent) {
      expect(errorOf(prompt)).toBeGreaterThan(-0.05);
      expect(errorOf(prompt)).toBeLessThan(0.12);
    }
  }
});

test.runIf(HAS_DATA)(
  'over the pi session the total is within 10 % for its agent and for a newcomer',
  async () => {
    const [log = []] = await realLogs('pi-large-session.jsonl');
    for (const agent of [ASSISTANT, 'reviewer']) {
      const view = viewOf(agent, log);
      showWaiting(view);
      expect(Math.abs(errorOf(promptOf(view)))).toBeLessThan(0.1);
    }
  },
);

if (!HAS_DATA) test.skip('skipped: no ../shared/data', () => undefined);

function errorOf({ messages, tokens }: PromptRecord): number {
  const counted = messages.slice(1).reduce((sum, message) => sum + rendered(message), 0);
  // In a short prompt the estimate for the framing dominates.
  return (tokens.total - counted) / Math.max(300, counted);
}

function rendered(message: PromptMessage): number {
  const calls = message.role === 'assistant' ? (message.calls ?? []) : [];
  const called = calls.reduce((sum, { name, args }) => sum + countTokens(`${name} ${args}`), 0);
  return countTokens(message.content) + called + FRAME;
}
