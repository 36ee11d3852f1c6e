import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scrollFor, windowOf } from '../../web/src/state/window.ts';

const ROW_PX = 28;

test('the window of a list has every visible row and few others', () => {
  fc.assert(
    fc.property(
      fc.nat(20_000),
      fc.integer({ min: 1, max: 1_200 }),
      fc.nat(1_000_000),
      (count, height, wanted) => {
        const scrollTop = Math.min(wanted, Math.max(0, count * ROW_PX - height));
        const { first, end, most } = windowOf(scrollTop, height, ROW_PX, count);
        const [seen, last] = [Math.floor(scrollTop / ROW_PX), Math.ceil((scrollTop + height) / ROW_PX)];
        expect(first).toBeLessThanOrEqual(seen);
        expect(end).toBeGreaterThanOrEqual(Math.min(count, last));
        expect(first).toBeGreaterThanOrEqual(0);
        expect(end - first).toBeLessThanOrEqual(most);
        expect(most).toBeLessThanOrEqual(Math.ceil(height / ROW_PX) + 26);
      },
    ),
  );
});

test('a fully visible row causes no scrolling', () => {
  expect(scrollFor(5, { scrollTop: 100, height: 280, rowHeight: ROW_PX })).toBeNull();
});

test('a row above or below is scrolled to the nearer edge', () => {
  expect(scrollFor(2, { scrollTop: 100, height: 280, rowHeight: ROW_PX })).toBe(56);
  expect(scrollFor(20, { scrollTop: 100, height: 280, rowHeight: ROW_PX })).toBe(21 * ROW_PX - 280);
});

test('a distant row, above or below, is shown in the middle', () => {
  for (const scrollTop of [0, 100_000])
    expect(scrollFor(1_000, { scrollTop, height: 280, rowHeight: ROW_PX })).toBe(1_000 * ROW_PX - 126);
});
