import { expect, test } from 'vitest';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { openTroupe } from '../support/mode.ts';

/** What the vendor counts, as characters per token. */
const COUNTS = {
  'as many tokens as Troupe': 4.2,
  'a third more': 3.1,
  'a fifth fewer': 5.2,
  'a third fewer': 6.2,
};
const RULE = 'A rule that must stay. ';
const WORDS = 'some words to remember ';
const MAX_OUTPUT = 256;
/** Tokens of the frame around instructions and a message, at most. */
const FRAME = 750;

interface Case {
  window: number;
  /** Share of the window that the instructions take, and a message's share of the rest. */
  instructions: number;
  message: number;
  counts: keyof typeof COUNTS;
  summaries: 'good' | 'refused';
}

const CASES: Case[] = [
  { window: 4_096, instructions: 0.5, message: 0.12, counts: 'as many tokens as Troupe', summaries: 'good' },
  { window: 4_096, instructions: 0.5, message: 0.4, counts: 'as many tokens as Troupe', summaries: 'good' },
  { window: 4_096, instructions: 0.5, message: 0.4, counts: 'a third more', summaries: 'refused' },
  { window: 4_096, instructions: 0.65, message: 0.12, counts: 'a third more', summaries: 'good' },
  { window: 16_384, instructions: 0.6, message: 0.3, counts: 'as many tokens as Troupe', summaries: 'good' },
  { window: 16_384, instructions: 0.7, message: 0.4, counts: 'a third more', summaries: 'good' },
  { window: 16_384, instructions: 0.7, message: 0.4, counts: 'a third more', summaries: 'refused' },
  {
    window: 16_384,
    instructions: 0.85,
    message: 0.2,
    counts: 'as many tokens as Troupe',
    summaries: 'refused',
  },
  { window: 32_768, instructions: 0.92, message: 0.3, counts: 'a fifth fewer', summaries: 'good' },
  { window: 32_768, instructions: 0.92, message: 0.3, counts: 'a fifth fewer', summaries: 'refused' },
  { window: 32_768, instructions: 0.88, message: 0.5, counts: 'a third fewer', summaries: 'good' },
  { window: 16_384, instructions: 0.85, message: 0.3, counts: 'a fifth fewer', summaries: 'good' },
];

test.each(CASES)(
  'an agent whose instructions take $instructions of a window of $window answers each message that fits beside them (the vendor counts $counts, summaries are $summaries)',
  { timeout: 60_000 },
  async ({ window, instructions, message, counts, summaries }) => {
    const perToken = COUNTS[counts];
    const countOf = (text: string) => Math.round(text.length / perToken);
    const room = window - MAX_OUTPUT;
    const rules = RULE.repeat(Math.floor((room * instructions * perToken) / RULE.length));
    const free = room - countOf(rules);
    const said = WORDS.repeat(Math.floor((free * message * perToken) / WORDS.length));
    expect(countOf(rules) + countOf(said) + FRAME).toBeLessThan(room);

    await using server = await startFakeOpenAi(({ body }) => {
      const sent = JSON.stringify((body as { messages: unknown }).messages);
      const isSummary = !sent.includes(RULE);
      if (countOf(sent) > window)
        return {
          error: {
            code: 'context_overflow',
            message: `This model's maximum context length is ${window} tokens. However, your messages resulted in ${countOf(sent)} tokens.`,
          },
        };
      if (isSummary && summaries === 'refused') return { error: { code: 'provider_invalid_request' } };
      const usage = { input: countOf(sent), output: 12, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
      return { text: isSummary ? 'Ana told several things to remember; each was noted.' : 'Noted.', usage };
    });
    await using troupe = await openTroupe(
      {
        agents: [
          {
            id: 'bo',
            instructions: rules,
            provider: 'openai-compatible',
            baseUrl: server.url,
            model: 'm',
            contextWindow: window,
            maxOutputTokens: MAX_OUTPUT,
          },
        ],
      },
      { env: { OPENAI_API_KEY: 'k' }, onWarning: () => undefined },
    );
    for (let n = 1; n <= 15; n += 1) {
      const { outcome, failures } = await troupe.ask('c', `Message ${n}: ${said}`);
      expect({ n, outcome, failures }).toEqual({ n, outcome: 'answered', failures: [] });
    }
  },
);
