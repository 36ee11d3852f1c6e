import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { breakpointsOf, sentBefore } from '../../src/context/build-prompt.ts';
import {
  cacheRequestOf,
  cacheRules,
  type CacheRequest,
  simulateCache,
} from '../../src/context/cache/cache-cost.ts';
import type { AgentId, ConversationId, PromptMessage } from '../../src/events/index.ts';

const NONE = { turnBegins: null, summaryEnds: null, frontier: null };
const RULES = { ...cacheRules('anthropic', 'claude-sonnet-4-5'), minimumTokens: 1 };

describe('breakpoints', () => {
  test('stand behind the system message and at the end, and nowhere in an empty prompt', () => {
    expect(breakpointsOf({ ...NONE, count: 0 })).toEqual([]);
    expect(breakpointsOf({ ...NONE, count: 1 })).toEqual([0]);
    expect(breakpointsOf({ ...NONE, count: 30 })).toEqual([0, 29]);
  });

  test('stand at the end of the last request, or else before the input of the turn', () => {
    expect(breakpointsOf({ ...NONE, count: 30, turnBegins: 20 })).toEqual([0, 20, 29]);
    expect(breakpointsOf({ ...NONE, count: 30, turnBegins: 20, sent: 25 })).toEqual([0, 25, 29]);
    expect(breakpointsOf({ ...NONE, count: 30, turnBegins: 20, sent: null })).toEqual([0, 20, 29]);
  });

  test('are at most four: the summary gives way to the frontier behind it', () => {
    const summarised = { ...NONE, count: 30, turnBegins: 20, summaryEnds: 1 };
    expect(breakpointsOf(summarised)).toEqual([0, 1, 20, 29]);
    expect(breakpointsOf({ ...summarised, frontier: 12 })).toEqual([0, 12, 20, 29]);
  });

  test('are at most four ascending indexes of the prompt, with both ends', () => {
    const index = fc.option(fc.integer({ min: -2, max: 40 }));
    const input = fc.record({
      count: fc.integer({ min: 1, max: 40 }),
      turnBegins: index,
      summaryEnds: index,
      frontier: index,
      sent: index,
    });
    fc.assert(
      fc.property(input, (given) => {
        const places = breakpointsOf(given);
        expect(places).toEqual([...new Set(places)].toSorted((a, b) => a - b));
        expect(places.length).toBeLessThanOrEqual(4);
        expect(places[0]).toBe(0);
        expect(places.at(-1)).toBe(given.count - 1);
      }),
    );
  });
});

describe('on an append-only sequence every request reads all of the one before it', () => {
  /** Steps, given by the number of blocks that they add; a turn is a list of steps. */
  const turns = fc.array(fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 12 }), {
    minLength: 1,
    maxLength: 12,
  });

  test('with steps of up to 12 blocks, with and without the end of the last request', () => {
    fc.assert(
      fc.property(turns, fc.boolean(), fc.constantFrom(null, 1), (lengths, isKnown, summaryEnds) => {
        expectAllRead(requestsOf(lengths, isKnown, summaryEnds));
      }),
    );
  });

  test('with dozens of parallel calls, as their prompts become blocks', () => {
    const calls = fc.array(fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 4 }), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(calls, (lengths) => expectAllRead(promptsOf(lengths))),
      { numRuns: 50 },
    );
  });

  test('which the beginning of the turn alone would not achieve', () => {
    const blind = promptsOf([[30, 30]], false);
    const { requests } = simulateCache(blind, RULES);
    expect(requests[2]?.read).toBeLessThan(requests[1]?.input ?? 0);
  });
});

function expectAllRead(sent: readonly CacheRequest[]): void {
  const { requests } = simulateCache(sent, RULES);
  for (const [index, { read, brokeAt }] of requests.entries()) {
    expect(brokeAt).toBeNull();
    expect(read).toBe(requests[index - 1]?.input ?? 0);
  }
}

/** Messages of one block each, the system message first. */
function requestsOf(
  turns: readonly number[][],
  isKnown: boolean,
  summaryEnds: number | null,
): CacheRequest[] {
  const all = Array.from({ length: 3_000 }, (_, index) => ({ hash: `${index}`, tokens: 7 }));
  const requests: CacheRequest[] = [];
  let count = 3;
  for (const steps of turns) {
    const turnBegins = count - 1;
    for (const added of steps) {
      const sent = isKnown ? (requests.at(-1)?.blocks.length ?? 0) - 1 : null;
      count += added;
      requests.push({
        at: requests.length,
        key: '',
        variant: '',
        blocks: all.slice(0, count),
        breakpoints: breakpointsOf({ count, turnBegins, summaryEnds, frontier: null, sent }),
        output: 0,
      });
    }
  }
  return requests;
}

/** Turns as lists of steps, and steps as numbers of parallel calls; a reply ends each turn. */
function promptsOf(turns: readonly number[][], isKnown = true): CacheRequest[] {
  const messages: PromptMessage[] = [{ role: 'system', content: 'rules', seqs: [] }];
  const requests: CacheRequest[] = [];
  const ask = (turnBegins: number) => {
    const sent = isKnown ? sentBefore(messages) : null;
    const prompt = {
      conversation: 'c' as ConversationId,
      agent: 'a' as AgentId,
      provider: 'anthropic',
      model: 'm',
      tools: [],
      messages,
      breakpoints: breakpointsOf({ ...NONE, count: messages.length, turnBegins, sent }),
    };
    requests.push(cacheRequestOf(prompt, { at: requests.length, output: 1, count }));
  };
  for (const [number, steps] of turns.entries()) {
    const turnBegins = messages.length - 1;
    messages.push({ role: 'user', content: `do ${number}`, seqs: [] });
    ask(turnBegins);
    for (const [step, parallel] of steps.entries()) {
      const calls = Array.from({ length: parallel }, (_, n) => ({
        id: `${number}-${step}-${n}`,
        name: 't',
        args: '{}',
      }));
      messages.push({ role: 'assistant', content: 'so', calls, seqs: [] });
      for (const { id } of calls) {
        messages.push({
          role: 'tool',
          call: id,
          name: 't',
          content: `result ${id}`,
          failed: false,
          seqs: [],
        });
      }
      ask(turnBegins);
    }
    messages.push({ role: 'assistant', content: `done ${number}`, seqs: [] });
  }
  return requests;
}

function count(text: string): number {
  return text.length;
}
