import fc from 'fast-check';
import { countTokens as countWithPackage, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base';
import vocabulary from 'gpt-tokenizer/bpeRanks/o200k_base';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { countTokens } from '../../src/context/budget/tokens.ts';
import { readRanks } from '../../src/base/o200k-ranks.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const NOTHING_SPECIAL = { disallowedSpecial: new Set<string>() };
/** Longer texts are counted in slices. */
const ONE_PIECE = 1_024;

// Its usual cache makes counting a hundred times slower once it is full.
beforeAll(() => setMergeCacheSize(1_000));

function expectSame(text: string): void {
  const tokens = countTokens(text);
  const expected = countWithPackage(text, NOTHING_SPECIAL);
  if (tokens !== expected) expect.soft(tokens, JSON.stringify(text)).toBe(expected);
}

function piecesOf(text: string, size: number): string[] {
  return Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
    text.slice(index * size, (index + 1) * size),
  );
}

test('the vocabulary is that of gpt-tokenizer, byte for byte', () => {
  const { lengths, bytes } = readRanks();
  expect(lengths).toHaveLength(vocabulary.length);
  let at = 0;
  const differing: number[] = [];
  for (const [rank, token] of vocabulary.entries()) {
    const expected = typeof token === 'string' ? Buffer.from(token) : Buffer.from(token ?? []);
    if (!expected.equals(bytes.subarray(at, at + (lengths[rank] ?? 0)))) differing.push(rank);
    at += lengths[rank] ?? 0;
  }
  expect(differing).toEqual([]);
  expect(at).toBe(bytes.length);
});

test('every token of the vocabulary counts as gpt-tokenizer counts it, and many with their start or end gone', () => {
  for (const [rank, token] of vocabulary.entries()) {
    const text = Buffer.from(token ?? []).toString();
    const cut = rank % 10 === 0 ? [text.slice(1), text.slice(0, -1)] : [];
    for (const each of [text, ...cut]) if (each !== '') expectSame(each);
  }
});

test('every text of this repository counts as gpt-tokenizer counts it, cut into parts of any length', () => {
  const texts = [
    'README.md',
    'CHANGELOG.md',
    'package-lock.json',
    ...inFolder('docs'),
    ...inFolder('test/context'),
  ];
  for (const [index, name] of texts.entries()) {
    const text = readFileSync(path.join(ROOT, name), 'utf8').slice(0, 100_000);
    for (const piece of piecesOf(text, 700 + index)) expectSame(piece);
  }
});

function inFolder(folder: string): string[] {
  const names = readdirSync(path.join(ROOT, folder), { withFileTypes: true });
  return names.filter((each) => each.isFile()).map(({ name }) => path.join(folder, name));
}

const codePoint = fc.integer({ min: 0, max: 0x10ffff }).map((point) => String.fromCodePoint(point));
const codeUnit = fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit));
const word = fc.integer({ min: 0, max: vocabulary.length - 1 }).map((rank) => {
  const token = vocabulary[rank];
  return typeof token === 'string' ? token : Buffer.from(token ?? []).toString();
});
/** Where decoders, splits and merges have their edges. */
const odd = fc.constantFrom(
  '\ufeff',
  '\ufeffa',
  'a\ufeff',
  '\ufeff\ufeff',
  '\ufffd',
  '\ud83d',
  '\udc00',
  '\u0000',
  '\u00ad',
  '\u0301',
  '\u200d',
  ' ',
  '  ',
  '\n',
  '\r\n',
  '\t',
  '\u00a0',
  '\u2028',
  '\u3000',
  "'ll",
  "'S",
  "don'",
  '123',
  '1234567',
  '½',
  '٣',
  '<|endoftext|>',
  '😀',
  '👩‍👩‍👧‍👦',
  '🏳️‍🌈',
  '你好',
  '한국',
  'ß',
  'ǅ',
  'ʰ',
  'ﬁ',
  'é',
  'e\u0301',
  'ก',
  'नि',
  '/',
  '//',
  '\n/',
  '...',
  '===',
);

test.each([
  ['code points', fc.array(codePoint, { maxLength: 200 })],
  ['code units, most of them no characters', fc.array(codeUnit, { maxLength: 200 })],
  [
    'characters that ASCII has',
    fc.array(fc.integer({ min: 0, max: 127 }).map((unit) => String.fromCharCode(unit))),
  ],
  ['tokens', fc.array(word, { maxLength: 40 })],
  ['edges', fc.array(odd, { maxLength: 60 })],
  ['edges between tokens', fc.array(fc.oneof(odd, word, codeUnit), { maxLength: 60 })],
  [
    'one thing again and again',
    fc
      .tuple(fc.oneof(odd, word, codePoint), fc.nat({ max: 300 }))
      .map(([unit, times]) => [unit.repeat(times)]),
  ],
])('any text of %s counts as gpt-tokenizer counts it', (_, parts) => {
  fc.assert(
    fc.property(parts, (given) => {
      const text = given.join('').slice(0, ONE_PIECE);
      expect(countTokens(text)).toBe(countWithPackage(text, NOTHING_SPECIAL));
    }),
    { numRuns: 1_000 },
  );
});
