import { describe, expect, it } from 'vitest';
import type { PromptLayer, PromptMessage } from '../../src/events/index.ts';
import type { PromptDiff } from '../../src/library/troupe.ts';
import { segmentsOf } from '../../web/src/parts/detail/message-segments.ts';
import { growthOf } from '../../web/src/parts/detail/prompt-growth.ts';
import {
  type LaidPrompt,
  messagesByLayer,
  messageTokens,
  placeOf,
  sizeOf,
  slicesOf,
} from '../../web/src/parts/detail/prompt-layout.ts';

function layer(name: PromptLayer['name'], tokens: number): PromptLayer {
  const isFrozen = name === 'rules' || name === 'tools';
  return { name, tokens, stability: isFrozen ? 'epoch' : 'append', hash: name, source: '' };
}

const USER = (content: string, ...seqs: number[]): PromptMessage => ({ role: 'user', content, seqs });
const SAID = (content: string, ...seqs: number[]): PromptMessage => ({ role: 'assistant', content, seqs });

const MISSED = '[new #123456]\n[@a 10:12] hi\n#';
const PROMPT: LaidPrompt = {
  mode: 'full',
  upTo: 9,
  layers: [
    layer('rules', 100),
    layer('tools', 300),
    layer('history', 500),
    layer('missed', 50),
    layer('trigger', 50),
  ],
  messages: [
    { role: 'system', content: 'be brief', seqs: [] },
    USER('long ago', 1),
    SAID('indeed', 2),
    USER(MISSED, 7),
    USER('and now?', 9),
    SAID('let me look', 11),
    { role: 'tool', call: 'c', name: 'search', content: 'x'.repeat(400), failed: false, seqs: [12] },
  ],
  tokens: {
    total: 1_000,
    window: 10_000,
    reserved: 1_000,
    free: 7_800,
    estimate: 1_200,
    calibrated: false,
    percent: 13,
    level: 'normal',
  },
};
const USAGE = { input: 2_000, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
const sum = (numbers: readonly number[]) => numbers.reduce((all, each) => all + each, 0);

describe('the size of a prompt', () => {
  it('is the count of the vendor, or else the estimate', () => {
    expect(sizeOf({ ...PROMPT, usage: USAGE })).toEqual({ tokens: 2_000, isReported: true });
    expect(sizeOf(PROMPT)).toEqual({ tokens: 1_200, isReported: false });
    // For a delta the vendor also counts the earlier messages of the session.
    expect(sizeOf({ ...PROMPT, mode: 'delta', usage: USAGE }).isReported).toBe(false);
  });

  it('is the sum of its layers; the messages have all but the frozen layers', () => {
    const prompt = { ...PROMPT, usage: USAGE };
    expect(sum(slicesOf(prompt).map(({ tokens }) => tokens))).toBeCloseTo(2_000);
    expect(sum(messageTokens(prompt))).toBeCloseTo(1_200);
  });
});

describe('the mark of a cache break in the bar', () => {
  it('is at the start of its layer, or after the messages before it', () => {
    expect(placeOf(PROMPT, { layer: 'tools', message: null })).toBeCloseTo(120);
    expect(placeOf(PROMPT, { layer: 'history', message: 1 })).toBeCloseTo(480);
    expect(placeOf(PROMPT, { layer: 'history', message: PROMPT.messages.length })).toBeCloseTo(1_200);
  });
});

describe('messages by layer', () => {
  it('separate this turn (missed, trigger, own steps) from the history', () => {
    const found = messagesByLayer(PROMPT, [9]);
    const at = (name: 'rules' | 'history' | 'missed' | 'trigger' | 'own') =>
      found.get(name)?.map(({ index }) => index);
    expect([at('rules'), at('history'), at('missed'), at('trigger'), at('own')]).toEqual([
      [0],
      [1, 2],
      [3],
      [4],
      [5, 6],
    ]);
  });

  it('keep a block of an earlier turn in the history', () => {
    const messages = [USER(MISSED, 3), SAID('ok', 4), USER('and now?', 9)];
    const found = messagesByLayer({ ...PROMPT, messages }, [9]);
    expect(found.get('missed')).toBeUndefined();
    expect(found.get('history')).toHaveLength(2);
  });
});

describe('lines of a message', () => {
  it('belong to the events of their block, in order', () => {
    const content = [
      '[new #123456]',
      '[Ana>@coder 2026-05-04 09:20] one',
      ' [coder] more',
      '[] two',
      '[late result of look] x',
      ' y',
      '-> three',
      '#',
      '',
      '[09:31]',
    ].join('\n');
    const segments = segmentsOf({ content, seqs: [4, 5, 7, 8] });
    expect(segments.map(({ seq, lines }) => [seq, lines.length])).toEqual([
      [null, 1],
      [4, 2],
      [5, 1],
      [7, 2],
      [8, 1],
      [null, 3],
    ]);
    expect(segments.flatMap(({ lines }) => lines).join('\n')).toBe(content);
  });

  it('belong to no event if events and fences differ', () => {
    expect(segmentsOf({ content: 'a\nb', seqs: [1, 2] })).toEqual([{ seq: null, lines: ['a', 'b'] }]);
  });
});

describe('what made a prompt larger', () => {
  const change = (a: number | null, b: number | null, lines: string[] = []) => ({
    a,
    b,
    role: 'user' as const,
    hunks: [{ aStart: 1, aLines: 1, bStart: 1, bLines: 1, lines }],
  });
  const diff = (changes: ReturnType<typeof change>[], layers: PromptDiff['layers'] = []) =>
    ({ messages: { changes }, layers }) as unknown as PromptDiff;

  it('is sorted by size, with the events of each message', () => {
    const growth = growthOf(diff([change(null, 4), change(null, 6)]), PROMPT);
    expect(growth.map(({ seqs }) => seqs)).toEqual([[12], [9]]);
    const sizes = messageTokens(PROMPT);
    expect(growth[0]?.tokens).toBeCloseTo(sizes[6] ?? 0);
  });

  it('has messages without events once, with their number', () => {
    const gone = (chars: number) => change(1, null, [`-${'y'.repeat(chars)}`]);
    const growth = growthOf(diff([gone(900), change(null, 6), gone(600), gone(300)]), PROMPT);
    expect(growth.map(({ count, tokens }) => [count, Math.sign(tokens)])).toEqual([
      [3, -1],
      [1, 1],
    ]);
    const [alone] = growthOf(diff([gone(1_800)]), PROMPT);
    expect(growth[0]?.tokens).toBeCloseTo(alone?.tokens ?? 0, -1);
  });

  it('counts removed messages as negative, and a frozen layer as a layer', () => {
    const tools = {
      name: 'tools',
      change: 'changed',
      hash: { a: 'x', b: 'y' },
      tokens: { a: 100, b: 300, delta: 200 },
    };
    const growth = growthOf(
      diff([change(6, 6, [`-${'y'.repeat(900)}`, '+short'])], [tools as PromptDiff['layers'][number]]),
      PROMPT,
    );
    expect(growth[0]?.tokens).toBeLessThan(-500);
    expect(growth[1]).toMatchObject({ layer: 'tools', tokens: 240 });
  });
});
