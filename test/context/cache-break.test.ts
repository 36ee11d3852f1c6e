import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { locateBreak } from '../../src/context/cache/locate-break.ts';
import type { LayerName, PromptLayer, PromptMessage } from '../../src/events/index.ts';

const said = (content: string, role: 'system' | 'user' | 'assistant' = 'user'): PromptMessage => ({
  role,
  content,
  seqs: [],
});
const layer = (name: LayerName, hash: string, source = 'baseline-1'): PromptLayer => ({
  name,
  stability: 'epoch',
  tokens: 1,
  hash,
  source,
});
const tool = (name: string, description = '') => ({ name, description, parameters: {} });

const BEFORE = {
  mode: 'full' as const,
  provider: 'anthropic',
  model: 'm',
  layers: [layer('rules', 'r'), layer('persona', 'p'), layer('tools', 't')],
  tools: [tool('read'), tool('write')],
  messages: [said('rules', 'system'), said('one'), said('two', 'assistant')],
};
const LONGER = [...BEFORE.messages, said('three')];

describe('where the cache broke', () => {
  test('is nowhere if a prompt begins with all of the previous one', () => {
    expect(locateBreak(BEFORE, BEFORE)).toBeNull();
    expect(locateBreak(BEFORE, structuredClone({ ...BEFORE, messages: LONGER }))).toBeNull();
  });

  test('does not depend on seqs, which come later', () => {
    const messages = LONGER.map((message) => ({ ...message, seqs: [7] }));
    expect(locateBreak(BEFORE, { ...BEFORE, messages })).toBeNull();
  });

  test('is the whole prompt under another model', () => {
    expect(locateBreak(BEFORE, { ...BEFORE, model: 'n', messages: [] })).toEqual({
      layer: 'rules',
      message: null,
      event: null,
      cause: 'model changed from anthropic/m to anthropic/n',
    });
  });

  test('is in the tools, which are named', () => {
    const layers = [layer('rules', 'r'), layer('persona', 'p'), layer('tools', 'u', 'baseline-2')];
    const tools = [tool('write', 'new'), tool('list')];
    expect(locateBreak(BEFORE, { ...BEFORE, layers, tools })).toEqual({
      layer: 'tools',
      message: null,
      event: 'baseline-2',
      cause: 'tools changed: +list -read ~write (baseline-2)',
    });
    const turned = BEFORE.tools.toReversed();
    expect(locateBreak(BEFORE, { ...BEFORE, tools: turned })?.cause).toContain('their order');
  });

  test('is in the layer of the system text that changed, by the baseline that changed it', () => {
    const layers = [layer('rules', 'r', 'baseline-2'), layer('persona', 'q', 'baseline-2')];
    const messages = [said('other rules', 'system'), ...LONGER.slice(1)];
    expect(locateBreak(BEFORE, { ...BEFORE, layers, messages })).toEqual({
      layer: 'persona',
      message: 0,
      event: 'baseline-2',
      cause: 'persona changed (baseline-2)',
    });
  });

  test('is a compaction that the log has and the previous prompt had not', () => {
    const old = { event: 'prune-1', kind: 'prune' } as const;
    const before = { ...BEFORE, cuts: [old] };
    const messages = [said('rules', 'system'), said('summary'), said('two', 'assistant')];
    const pruned = { ...BEFORE, messages, cuts: [old, { event: 'prune-2', kind: 'prune' as const }] };
    expect(locateBreak(before, pruned)).toEqual({
      layer: 'history',
      message: 1,
      event: 'prune-2',
      cause: 'outputs pruned (prune-2)',
    });
    const adopted = { ...pruned, cuts: [...pruned.cuts, { event: 'baseline-2', kind: 'adopt' as const }] };
    expect(locateBreak(before, adopted)).toEqual({
      layer: 'summary',
      message: 1,
      event: 'baseline-2',
      cause: 'summary adopted (baseline-2)',
    });
  });

  test('is a bug if nothing in the log explains it', () => {
    const messages = [...BEFORE.messages.slice(0, 2), said('too', 'assistant')];
    expect(locateBreak(BEFORE, { ...BEFORE, messages })).toEqual({
      layer: 'history',
      message: 2,
      event: null,
      cause: 'message 2 changed',
    });
    const shorter = { ...BEFORE, messages: BEFORE.messages.slice(0, 2) };
    expect(locateBreak(BEFORE, shorter)?.cause).toBe('message 2 is gone');
  });

  test('is unknown for a delta, whose beginning the provider remembers', () => {
    expect(locateBreak(BEFORE, { ...BEFORE, mode: 'delta', messages: [] })).toBeNull();
  });

  test('is the first message that differs, whatever follows it', () => {
    const history = fc.array(fc.constantFrom('a', 'b'), { maxLength: 8 });
    fc.assert(
      fc.property(history, history, (was, is) => {
        const asPrompt = (words: readonly string[]) => ({
          ...BEFORE,
          messages: [said('rules', 'system'), ...words.map((word) => said(word))],
        });
        const differs = was.findIndex((word, index) => word !== is[index]);
        const found = locateBreak(asPrompt(was), asPrompt(is))?.message ?? null;
        expect(found).toBe(differs === -1 ? null : differs + 1);
      }),
    );
  });
});
