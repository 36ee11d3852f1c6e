import fc from 'fast-check';
import { expect, test } from 'vitest';
import { preview } from '../../src/tools/preview.ts';

test('a short text is shown whole', () => {
  expect(preview('a\nb\n')).toEqual({ text: 'a\nb\n', cut: false });
  expect(preview('')).toEqual({ text: '', cut: false });
});

test('a long text shows its head and tail and a note about the missing middle', () => {
  const lines = Array.from({ length: 1000 }, (_, i) => `line ${i}`);
  const { text, cut } = preview(lines.join('\n'), { maxLines: 10, artifact: 'c-a-1-0' });
  expect(cut).toBe(true);
  const shown = text.split('\n');
  expect(shown.slice(0, 5)).toEqual(lines.slice(0, 5));
  expect(shown.slice(-5)).toEqual(lines.slice(-5));
  expect(shown).toHaveLength(11);
  expect(shown[5]).toBe(
    '[... 8810 of 8889 bytes, about 990 of 1000 lines not shown; all of it: read_artifact with id @artifact/c-a-1-0 ...]',
  );
});

test('whole lines are kept if that costs little', () => {
  const lines = Array.from({ length: 300 }, (_, i) => `line ${i} ${'x'.repeat(90)}`);
  const { text } = preview(lines.join('\n'), { maxBytes: 4096 });
  const shown = text.split('\n').filter((line) => !line.startsWith('[...'));
  expect(shown.length).toBeGreaterThan(30);
  expect(shown.every((line) => lines.includes(line))).toBe(true);
});

test('an endless line is cut by bytes', () => {
  const { text } = preview('é'.repeat(100_000), { maxBytes: 2000 });
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2000);
  expect(text).toMatch(/^é{400,}\n\[\.\.\. .*\n?é{400,}$/);
});

test('the limits hold for any text, and no surrogate pair is split', () => {
  const unit = fc.constantFrom('a', 'ü', '世', '👍', '\n', '\n\n', 'word ', 'x'.repeat(50));
  const texts = fc.array(unit, { maxLength: 600 }).map((units) => units.join(''));
  fc.assert(
    fc.property(
      texts,
      fc.integer({ min: 400, max: 2000 }),
      fc.integer({ min: 2, max: 40 }),
      (whole, maxBytes, maxLines) => {
        const { text, cut } = preview(whole, { maxBytes, maxLines, artifact: 'x' });
        expect(text.isWellFormed()).toBe(true);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxBytes);
        expect(cut || text === whole).toBe(true);
        if (!cut) return;
        const [head = '', tail = ''] = text.split(/^\[\.\.\. .* \.\.\.\]$/m);
        expect(whole.startsWith(head.replace(/\n$/, ''))).toBe(true);
        expect(whole.endsWith(tail.replace(/^\n/, ''))).toBe(true);
      },
    ),
    { numRuns: 300 },
  );
});
