import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  cacheRules,
  type CacheRules,
  type CacheRequest,
  simulateCache,
} from '../../src/context/cache/cache-cost.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';

const MINUTE = 60_000;
const ANTHROPIC = cacheRules('anthropic', 'claude-sonnet-4-5');
const OPENAI = cacheRules('openai', 'gpt-5');
const GEMINI = cacheRules('gemini', 'gemini-2.5-pro');
const DEEPSEEK = cacheRules('deepseek', 'deepseek-chat');
const ALL = [ANTHROPIC, OPENAI, GEMINI, DEEPSEEK];

/** Blocks of 1,000 tokens, one for each letter; a breakpoint at the last unless told otherwise. */
function request(letters: string, rest: Partial<CacheRequest> = {}): CacheRequest {
  const blocks = letters.split('').map((hash) => ({ hash, tokens: 1_000 }));
  return { at: 0, key: 'k', variant: 'v', blocks, breakpoints: [blocks.length - 1], output: 0, ...rest };
}

function reads(requests: readonly CacheRequest[], rules: CacheRules): number[] {
  return simulateCache(requests, rules).requests.map(({ read }) => read);
}

describe.each(ALL)('the cache of $vendor', (rules) => {
  test('reads a longer request up to the end of the previous one', () => {
    const [, second] = simulateCache([request('abc'), request('abcde')], rules).requests;
    expect(second?.read).toBe(3_000 - (3_000 % rules.stepTokens));
    expect(second?.brokeAt).toBeNull();
  });

  test('reads nothing behind a changed block, and reports where it broke', () => {
    const [, second] = simulateCache([request('abcd'), request('Xbcde')], rules).requests;
    expect(second).toMatchObject({ read: 0, brokeAt: 0 });
    const [, third] = simulateCache([request('abcd'), request('abXde')], rules).requests;
    expect(third?.brokeAt).toBe(2);
    expect(third?.read).toBeLessThanOrEqual(2_000);
  });

  test('shares nothing with another model, effort or tool set', () => {
    const [, second] = simulateCache([request('abc'), request('abcd', { variant: 'other' })], rules).requests;
    expect(second).toMatchObject({ read: 0, brokeAt: 0 });
  });

  test('forgets what was unused for its time to live, and reading refreshes it', () => {
    const late = rules.ttlMs * 0.9;
    const kept = [request('abc'), request('abcd', { at: late }), request('abcde', { at: 2 * late })];
    expect(reads(kept, rules)[2]).toBeGreaterThan(3_000);
    const lost = [request('abc'), request('abcd', { at: rules.ttlMs + 1 })];
    expect(simulateCache(lost, rules).requests[1]).toMatchObject({ read: 0, brokeAt: null });
  });

  test('refreshes what was read, also if the reader continues from it', () => {
    const late = rules.ttlMs * 0.9;
    const requests = [request('abc'), request('abcd', { at: late }), request('abcX', { at: 2 * late })];
    expect(reads(requests, rules)[2]).toBe(3_000 - (3_000 % rules.stepTokens));
  });

  test('never forgets when its time to live is infinite, and never remembers what was not sent', () => {
    const forever = { ...rules, ttlMs: Number.POSITIVE_INFINITY };
    expect(reads([request('abc'), request('abcd', { at: 1e12 })], forever)[0]).toBe(0);
    expect(reads([request('abc'), request('abcd', { at: 1e12 })], forever)[1]).toBeGreaterThan(2_900);
  });

  test('accounts for every input token once', () => {
    const { requests, total } = simulateCache([request('abc', { output: 10 }), request('abcd')], rules);
    for (const { input, read, written, fresh } of requests) expect(read + written + fresh).toBe(input);
    expect(total).toMatchObject({ input: 7_000, output: 10 });
    expect(total.hitRate).toBe(total.read / 7_000);
    const { price } = rules;
    expect(total.cost).toBeCloseTo(
      total.read * price.read + total.written * price.write + total.fresh + 10 * price.output,
    );
  });
});

describe('breakpoints', () => {
  const long = 'abcdefghijklmnopqrstuvwxyz';

  test('are all that is written: nothing is read from elsewhere', () => {
    const plain = [request('abc', { breakpoints: [] }), request('abcd')];
    expect(reads(plain, ANTHROPIC)).toEqual([0, 0]);
    expect(simulateCache(plain, ANTHROPIC).requests[0]).toMatchObject({ written: 0, fresh: 3_000 });
  });

  test('look back twenty blocks and not one more', () => {
    expect(reads([request('abc'), request(long.slice(0, 23))], ANTHROPIC)[1]).toBe(3_000);
    expect(reads([request('abc'), request(long.slice(0, 24))], ANTHROPIC)[1]).toBe(0);
    const anchored = request(long, { breakpoints: [2, 25] });
    expect(simulateCache([request('abc'), anchored], ANTHROPIC).requests[1]).toMatchObject({
      read: 3_000,
      written: 23_000,
    });
  });

  test('are not written below the minimum of the model', () => {
    const small = cacheRules('anthropic', 'claude-haiku-4-5');
    expect(reads([request('abcd'), request('abcd')], small)).toEqual([0, 0]);
    expect(reads([request('abcde'), request('abcde')], small)).toEqual([0, 5_000]);
  });

  test('count up to four, the first ones', () => {
    const five = { breakpoints: [0, 1, 2, 3, 4] };
    const { total } = simulateCache([request('abcde', five)], ANTHROPIC);
    expect(total).toMatchObject({ written: 4_000, fresh: 1_000 });
  });

  test('cost 1.25x to write, 2x for an hour, and 0.1x to read', () => {
    const twice = [request('abcd'), request('abcd', { at: 30 * MINUTE })];
    expect(simulateCache(twice, ANTHROPIC).total.cost).toBe(8_000 * 1.25);
    const hour = cacheRules('anthropic', 'claude-sonnet-4-5', { hour: true });
    expect(simulateCache(twice, hour).total.cost).toBeCloseTo(4_000 * 2 + 4_000 * 0.1);
  });
});

describe('automatic caches', () => {
  test('of OpenAI read in steps of 128 from 1,024 tokens on, and writes cost nothing extra', () => {
    const shared = (tokens: number) => [{ hash: 'shared', tokens }];
    const pair = (tokens: number) => [
      request('', { blocks: shared(tokens) }),
      request('', { blocks: [...shared(tokens), { hash: 'x', tokens: 10 }] }),
    ];
    expect(reads(pair(1_023), OPENAI)[1]).toBe(0);
    expect(reads(pair(1_024), OPENAI)[1]).toBe(1_024);
    expect(reads(pair(1_300), OPENAI)[1]).toBe(1_280);
    expect(simulateCache(pair(1_300), OPENAI).requests[0]).toMatchObject({ written: 0, cost: 1_300 });
  });

  test('of OpenAI are separate per cache key; those of Gemini are not', () => {
    const siblings = [request('abc', { key: 'one' }), request('abcd', { key: 'two' })];
    expect(reads(siblings, OPENAI)[1]).toBe(0);
    expect(reads(siblings, GEMINI)[1]).toBe(3_000);
  });

  test('of OpenAI and Gemini share any common prefix, those of DeepSeek only whole requests', () => {
    const branches = [request('abcd'), request('abcX')];
    expect(reads(branches, OPENAI)[1]).toBe(2_944);
    expect(reads(branches, GEMINI)[1]).toBe(3_000);
    expect(reads(branches, DEEPSEEK)[1]).toBe(0);
  });

  test('of DeepSeek contain the answer, too, if it comes back unchanged', () => {
    expect(reads([request('abc', { output: 1_000 }), request('abcde')], DEEPSEEK)[1]).toBe(3_968);
    expect(reads([request('abc', { output: 999 }), request('abcde')], DEEPSEEK)[1]).toBe(2_944);
  });
});

describe('against a plain model that keeps every prefix by its text', () => {
  const sequences = fc.array(
    fc.record({
      letters: fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 9 }),
      marks: fc.uniqueArray(fc.nat(8), { maxLength: 4 }),
      pause: fc.constantFrom(0, 1, 4, 6).map((minutes) => minutes * MINUTE),
    }),
    { maxLength: 12 },
  );
  const narrow = { ...ANTHROPIC, match: { kind: 'breakpoints', most: 4, lookbackBlocks: 2 } } as const;

  test.each([narrow, GEMINI, DEEPSEEK])('the simulation of $vendor reads the same', (rules) => {
    fc.assert(
      fc.property(sequences, (drawn) => {
        let at = 0;
        const requests = drawn.map(({ letters, marks, pause }) => {
          const breakpoints = marks.filter((mark) => mark < letters.length).toSorted((a, b) => a - b);
          return request(letters.join(''), { at: (at += pause), breakpoints });
        });
        expect(reads(requests, rules)).toEqual(plainReads(requests, rules));
      }),
      { numRuns: 500 },
    );
  });
});

function plainReads(requests: readonly CacheRequest[], rules: CacheRules): number[] {
  const used = new Map<string, number>();
  return requests.map(({ at, blocks, breakpoints }) => {
    const prefix = (length: number) =>
      blocks
        .slice(0, length)
        .map(({ hash }) => hash)
        .join('');
    const lengths = blocks
      .map((_, index) => index + 1)
      .filter((length) => length * 1_000 >= rules.minimumTokens);
    const { match } = rules;
    const marks = lengths.filter((length) => breakpoints.includes(length - 1));
    const isInReach = (length: number) =>
      match.kind !== 'breakpoints' ||
      marks.some((mark) => length <= mark && length >= mark - match.lookbackBlocks);
    const longest = lengths.findLast(
      (length) => isInReach(length) && at - (used.get(prefix(length)) ?? -Infinity) < rules.ttlMs,
    );
    const kept = { breakpoints: marks, 'longest-prefix': lengths, 'whole-requests': [blocks.length] }[
      match.kind
    ];
    for (const length of [...kept, ...(longest === undefined ? [] : [longest])]) used.set(prefix(length), at);
    const read = (longest ?? 0) * 1_000;
    return read - (read % rules.stepTokens);
  });
}

test('five hundred requests of up to two thousand blocks take less than 300 ms of CPU time, grown or all broken', async () => {
  const all = Array.from({ length: 2_000 }, (_, index) => ({ hash: `block ${index}`, tokens: 100 }));
  const grown = Array.from({ length: 500 }, (_, index) =>
    request('', { at: index, blocks: all.slice(0, 1_001 + index * 2), breakpoints: [0, 1_000 + index * 2] }),
  );
  const broken = grown.map((one, index) => ({
    ...one,
    blocks: [{ hash: `time ${index}`, tokens: 100 }, ...all.slice(1)],
  }));
  for (const rules of ALL) {
    for (const requests of [grown, broken]) expect(await fastest(requests, rules)).toBeLessThan(300);
  }
});

/** CPU time of the fastest of three runs. */
async function fastest(requests: readonly CacheRequest[], rules: CacheRules): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < 3; run++) times.push(await cpuMsOf(() => simulateCache(requests, rules)));
  return Math.min(...times);
}
