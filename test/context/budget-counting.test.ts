import fc from 'fast-check';
import { countTokens as countUnsliced } from 'gpt-tokenizer/encoding/o200k_base';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { countTokens } from '../../src/context/budget/tokens.ts';
import { ASSISTANT, DATA, HAS_DATA, realLogs } from '../support/real-logs.ts';
import { eventText } from '../../src/context/text/event-text.ts';

const NOTHING_SPECIAL = { disallowedSpecial: new Set<string>() };
const MB = 1_000_000;

function offBy(text: string): number {
  const exact = countUnsliced(text, NOTHING_SPECIAL);
  return Math.abs(countTokens(text) - exact) / exact;
}

test.runIf(HAS_DATA)('the count of English of any length is within 2 % of the count in one piece', () => {
  const english = talk();
  expect(english.length).toBeGreaterThan(100_000);
  for (const length of [1_500, 5_000, 20_000, 100_000, english.length])
    expect(offBy(english.slice(0, length)), `${length} characters`).toBeLessThan(0.02);
});

test.runIf(HAS_DATA)(
  'the count of every event of a coding session is within 3 %, that of all events within 1 %',
  async () => {
    const [log = []] = await realLogs('pi-large-session.jsonl');
    let sliced = 0;
    let exact = 0;
    for (const text of log.map(eventText)) {
      if (text === '') continue;
      const whole = countUnsliced(text, NOTHING_SPECIAL);
      const counted = countTokens(text);
      expect(Math.abs(counted - whole), text.slice(0, 80)).toBeLessThanOrEqual(Math.max(2, whole * 0.03));
      sliced += counted;
      exact += whole;
    }
    expect(exact).toBeGreaterThan(50_000);
    expect(Math.abs(sliced - exact) / exact).toBeLessThan(0.01);
    expect(log.some(({ author }) => author.kind === 'agent' && author.id === ASSISTANT)).toBe(true);
  },
);

if (!HAS_DATA) test.skip('skipped: no ../shared/data', () => undefined);

test('a long text with two different halves is not counted by one of them', () => {
  const words = 'The quick brown fox jumps over the lazy dog, and it stops. '.repeat(3_000);
  const marks = '{"a":[1,2,{"b":"\\u00e9"}]},'.repeat(6_000);
  expect(offBy(words + marks)).toBeLessThan(0.03);
});

test.each([
  ['one letter', 'a'],
  ['emoji', '😀👩‍👩‍👧‍👦🏳️‍🌈'],
  ['Chinese', '你好，世界。'],
  ['bidi marks', '\u202eabc\u202c\u2066x\u2069'],
  ['zero-width marks', 'a\u200bb\u200d'],
  ['special tokens', '<|endoftext|><|im_start|>'],
  ['lone high surrogates', '\ud83d'],
  ['lone low surrogates', '\udc00'],
  ['NUL', '\0'],
  ['spaces', ' '],
  ['line ends', '\r\n'],
])('1 MB of %s is counted as 10 kB of it, a hundred times', (_, unit) => {
  const of = (length: number) => countTokens(unit.repeat(Math.ceil(length / unit.length)));
  const expected = of(MB / 100) * 100;
  expect(Math.abs(of(MB) - expected) / expected).toBeLessThan(0.03);
});

test('text that looks like a special token is counted as text', () => {
  expect(countTokens('<|endoftext|>')).toBe(countUnsliced('<|endoftext|>', NOTHING_SPECIAL));
  expect(countTokens('<|endoftext|>')).toBeGreaterThan(1);
});

test('any text can be counted, deterministically, with at most one token per byte', () => {
  const units = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((n) => String.fromCharCode(n)) });
  fc.assert(
    fc.property(units, fc.integer({ min: 1, max: 2_000 }), (unit, times) => {
      const text = unit.repeat(times);
      const tokens = countTokens(text);
      expect(tokens).toBe(countTokens(text));
      expect(tokens > 0).toBe(text !== '');
      expect(tokens).toBeLessThanOrEqual(Buffer.byteLength(text) + 1);
    }),
    { numRuns: 200 },
  );
});

/** Dialogues from LoCoMo: plain English without markup. */
function talk(): string {
  const lines: string[] = [];
  for (const name of ['26.json', '30.json', '41.json']) {
    JSON.parse(readFileSync(path.join(DATA, 'locomo', name), 'utf8'), (key, value: unknown) => {
      if (key === 'text' && typeof value === 'string') lines.push(value);
      return value;
    });
  }
  return lines.join('\n');
}
