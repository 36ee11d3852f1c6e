import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AnswerCleaner, cleanAnswer } from '../../src/context/index.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';

const clean = (text: string) => cleanAnswer(text, 'bo');

describe('marks that an answer has copied from its prompt', () => {
  test.each([
    [
      'a summary in front',
      '<summary-3fa94c01>\nWe sell books.\n</summary-3fa94c01>\nI begin.',
      'We sell books.\nI begin.',
    ],
    ['an old fence', '<msg-1a2b3c4d>\n[@bo] I begin.\n</msg-1a2b3c4d>', 'I begin.\n'],
    ['a tag behind words', '<reminder-12ab> Be brief. </reminder-12ab>\nYes.', 'Be brief.\nYes.'],
    ['the tag of the rules', '<summary-…>\nWe sell books.', 'We sell books.'],
    ['a mark with a number, and its end', '[@bo #482193]\nI begin.\n#482193', 'I begin.\n'],
    ['a mark in front of words', '[@coder>@bo 10:12 #482193] Done.', 'Done.'],
    ['a block', '[new #100200]\n[@bo] I begin.\n#', 'I begin.\n'],
    ['a reminder', '[reminder #100200]\r\nWork on.\r\n#100200\r\nYes.', 'Work on.\r\nYes.'],
    ['its own name', '[@bo] I begin.', 'I begin.'],
    ['its own name, to somebody', '[bo>@ana 2026-11-21T22:05Z] I begin.', 'I begin.'],
    ['several in a line', '  <msg-12ab> [@bo] [@bo #482193]  I begin.', 'I begin.'],
    ['nothing but marks', '<msg-12ab>\n</msg-12ab>', ''],
  ])('go, and the words stay: %s', (_, text, words) => {
    expect(clean(text)).toBe(words);
  });

  test.each([
    '# 100200\n#482193\n[1] first\n[new] page',
    '[Fix the basket #482193] is merged',
    '[#482193] is merged',
    '[@ana] what do you say?',
    '[@bo](https://example.org/@bo) is my page',
    '<summary-card>\n<msg-list></msg-list>',
    'The rules speak of <summary-3fa94c01> and of [@bo #482193].',
    '`<summary-3fa94c01>` stands for it',
    '```\n<summary-3fa94c01>\n[@bo #482193]\n#482193\n```\nand that is all',
    '~~~text\n[@bo] x',
    '',
    '\n\n  \n',
    'half \ud83d of a pair',
  ])('are not seen in %j', (text) => {
    expect(clean(text)).toBe(text);
  });
});

const MARKS = [
  '<summary-3fa94c01>',
  '</summary-3fa94c01>',
  '<msg-12ab>',
  '</msg-12ab>',
  '<summary-…>',
  '[@bo #482193]',
  '[new #100200]',
  '[reminder #482193]',
  '#482193',
  '#',
  '[@bo]',
  '[bo>@ana]',
  '[@bo',
];
const words = fc.constantFrom(
  '\n',
  '\r\n',
  ' ',
  '\t',
  'x',
  '```',
  '~~~',
  '<',
  '>',
  '[',
  ']',
  '(',
  '</',
  'é',
  '#1',
);
const mixed = fc
  .array(fc.oneof(fc.constantFrom(...MARKS), words, fc.string({ maxLength: 4 })), { maxLength: 24 })
  .map((parts) => parts.join(''));

describe('cleaning', () => {
  test('leaves every text without marks as it is', () => {
    const looks = /[<[#]\s*\/?\s*(?:msg|missed|handoff|reminder|summary|transcript|new|late|@|bo\b)|#\d{6}/i;
    const plain = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(words).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(plain, (text) => {
        fc.pre(!looks.test(text));
        expect(clean(text)).toBe(text);
      }),
      { numRuns: 3_000 },
    );
  });

  test('is done after once', () => {
    fc.assert(
      fc.property(mixed, (text) => {
        const once = clean(text);
        expect(clean(once)).toBe(once);
      }),
      { numRuns: 10_000 },
    );
  });

  test('gives for pieces what it gives for the whole', () => {
    fc.assert(
      fc.property(mixed, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (text, lengths) => {
        const cleaner = new AnswerCleaner('bo');
        let seen = '';
        for (let at = 0, n = 0; at < text.length; n += 1) {
          const end = at + (lengths[n % lengths.length] ?? 1);
          seen += cleaner.push(text.slice(at, end));
          at = end;
        }
        expect(seen + cleaner.end()).toBe(clean(text));
      }),
      { numRuns: 10_000 },
    );
  });

  test.each([
    ['blanks', ' '],
    ['brackets', '['],
    ['signs', '<'],
    ['numbers', '#482193\n'],
    ['names', '[@bo] '],
    ['closing tags in one line', '</msg-12ab>'],
    ['halves of tags', '<msg-'],
    ['fences', '```\n'],
    ['labels that do not end', '[@bo>'],
  ])('takes steps in proportion to the length of %s', async (_, part) => {
    const cpuMs = (length: number) => {
      const text = `<msg-12ab>\nx ${part.repeat(Math.ceil(length / part.length))}`;
      const cleaner = new AnswerCleaner('bo');
      return cpuMsOf(() => {
        for (let at = 0; at < text.length; at += 5) cleaner.push(text.slice(at, at + 5));
        cleaner.end();
      });
    };
    await cpuMs(20_000);
    // Quadratic work would take minutes.
    expect(await cpuMs(100_000)).toBeLessThan(10_000);
  });
});
