import { describe, expect, test } from 'vitest';
import { type Layout, type LayoutRow, scoreLayouts } from '../../score/layouts.ts';
import { timedLog } from '../../score/timed-log.ts';
import { HAS_DATA } from '../support/real-logs.ts';

if (!HAS_DATA) test.skip('skipped: no ../shared/data', () => undefined);

describe.runIf(HAS_DATA)('layouts on the pi session, at the times at which it was held', async () => {
  const rows = HAS_DATA ? scoreLayouts(await timedLog('pi-large-session.jsonl')) : [];
  const at = (vendor: string, layout: Layout): LayoutRow => {
    const row = rows.find((one) => one.vendor === vendor && one.layout === layout);
    if (!row) throw new Error(`no row for ${layout} at ${vendor}`);
    return row;
  };
  const relative = (layout: Layout) => at('anthropic', layout).relative;

  test.each(['anthropic', 'openai', 'gemini', 'deepseek'])(
    'at least 98 %% of an append-only log is read from the cache of %s',
    (vendor) => {
      expect(at(vendor, 'append-only').hitRate).toBeGreaterThan(0.98);
    },
  );

  test('live blocks that stay where they were cost at most 5 % more than none', () => {
    for (const vendor of ['anthropic', 'openai', 'gemini', 'deepseek']) {
      expect(1 / at(vendor, 'no live block').relative).toBeLessThan(1.05);
    }
  });

  test('the time in the system prompt, or a changing block before the history, costs about ten times as much', () => {
    expect(relative('time in the system prompt')).toBeGreaterThan(10);
    expect(relative('time in the system prompt')).toBeLessThan(12.5);
    expect(relative('changing block before the history')).toBeGreaterThan(9.5);
    expect(relative('changing block before the history')).toBeLessThan(12);
  });

  test('a live block that moves costs more than one that stays', () => {
    expect(relative('moving live block')).toBeGreaterThan(1.1);
  });

  test('decay of old results costs about eight times as much without a frontier breakpoint as with one', () => {
    const ratio = relative('keep-3 decay, no frontier') / relative('keep-3 decay, frontier');
    expect(ratio).toBeGreaterThan(6.5);
    expect(ratio).toBeLessThan(10);
  });
});
