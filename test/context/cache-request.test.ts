import { describe, expect, test } from 'vitest';
import { cacheRequestOf } from '../../src/context/cache/cache-cost.ts';
import type { AgentId, ConversationId, PromptMessage, ToolSpec } from '../../src/events/index.ts';

const SYSTEM: PromptMessage = { role: 'system', content: 'rules', seqs: [] };
const ASKED: PromptMessage = { role: 'user', content: 'add these', seqs: [1] };
const STEP: PromptMessage = {
  role: 'assistant',
  content: 'I add',
  calls: [
    { id: 'a', name: 'add', args: '{"x":1}' },
    { id: 'b', name: 'add', args: '{"x":2}' },
  ],
  reasoning: { text: 'hm', signature: 'sig', provider: 'anthropic', model: 'm' },
  seqs: [2],
};
const RESULTS: PromptMessage[] = ['a', 'b'].map((call) => ({
  role: 'tool',
  call,
  name: 'add',
  content: `result of ${call}`,
  failed: false,
  seqs: [3],
}));
const ADD: ToolSpec = { name: 'add', description: 'adds', parameters: {} };

const PROMPT = {
  conversation: 'c' as ConversationId,
  agent: 'ada' as AgentId,
  provider: 'anthropic',
  model: 'm',
  tools: [ADD],
  messages: [SYSTEM, ASKED, STEP, ...RESULTS],
  breakpoints: [0, 1, 4],
};
const FACTS = { at: 5, output: 6, count: (text: string) => text.length };

describe('a prompt as blocks of a cache', () => {
  test("has a block for the tools, the system text, each text, call and result, and the agent's reasoning", () => {
    const { blocks, breakpoints, ...rest } = cacheRequestOf(PROMPT, FACTS);
    expect(blocks).toHaveLength(1 + 1 + 1 + 4 + 2);
    // After the system text, the user's message, and the last result.
    expect(breakpoints).toEqual([1, 2, 8]);
    expect(rest).toMatchObject({ at: 5, output: 6, key: 'c/ada' });
    expect(blocks[2]?.tokens).toBe('add these'.length);
  });

  test('omits the reasoning of another model, and empty texts', () => {
    const other = cacheRequestOf({ ...PROMPT, model: 'other' }, FACTS);
    expect(other.blocks).toHaveLength(8);
    const silent: PromptMessage = { ...STEP, content: ' ' };
    const messages = [SYSTEM, ASKED, silent, ...RESULTS];
    expect(cacheRequestOf({ ...PROMPT, messages }, FACTS).blocks).toHaveLength(8);
  });

  test('puts a breakpoint of a message without blocks behind the one before it', () => {
    const messages: PromptMessage[] = [{ ...SYSTEM, content: '' }, ASKED, { ...ASKED, content: '' }];
    const { blocks, breakpoints } = cacheRequestOf({ ...PROMPT, messages, breakpoints: [0, 2] }, FACTS);
    expect(blocks).toHaveLength(2);
    expect(breakpoints).toEqual([0, 1]);
  });

  test('is equal for equal bytes and differs in any byte, role, call or verdict', () => {
    const hashes = (messages: readonly PromptMessage[]) =>
      cacheRequestOf({ ...PROMPT, messages: [...messages] }, FACTS).blocks.map(({ hash }) => hash);
    const copies = structuredClone(PROMPT.messages).map((message) => ({ ...message, seqs: [99] }));
    expect(hashes(copies)).toEqual(hashes(PROMPT.messages));
    const variants: PromptMessage[] = [
      ASKED,
      { ...ASKED, content: 'add those' },
      { role: 'assistant', content: 'add these', seqs: [] },
      { role: 'tool', call: 'a', name: 'add', content: 'add these', failed: false, seqs: [] },
      { role: 'tool', call: 'b', name: 'add', content: 'add these', failed: false, seqs: [] },
      { role: 'tool', call: 'b', name: 'add', content: 'add these', failed: true, seqs: [] },
    ];
    expect(new Set(variants.map((message) => hashes([message]).at(-1))).size).toBe(variants.length);
  });

  test('has another variant under another model or tool set', () => {
    const variants = [
      PROMPT,
      { ...PROMPT, model: 'n' },
      { ...PROMPT, provider: 'openai' },
      { ...PROMPT, tools: [] },
      { ...PROMPT, tools: [{ ...ADD, description: 'sums' }] },
    ].map((prompt) => cacheRequestOf(prompt, FACTS).variant);
    expect(new Set(variants).size).toBe(variants.length);
  });

  test('is counted once per message, for any number of prompts', () => {
    let counted = 0;
    const count = (text: string) => {
      counted += 1;
      return text.length;
    };
    const facts = { ...FACTS, count };
    cacheRequestOf(PROMPT, facts);
    const before = counted;
    const fresh: PromptMessage = { role: 'user', content: 'and now', seqs: [] };
    const messages = [{ ...SYSTEM }, ...PROMPT.messages.slice(1), fresh];
    cacheRequestOf({ ...PROMPT, tools: [ADD], messages }, facts);
    expect(counted - before).toBe(1);
  });
});
