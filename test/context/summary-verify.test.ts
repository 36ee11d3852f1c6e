import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countTokens } from '../../src/context/budget/tokens.ts';
import { parseHandoff } from '../../src/context/summary/requests.ts';
import { toolSyntaxShare, verifySummary } from '../../src/context/summary/verify-summary.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';

const BOUNDS = { inputTokens: 10_000, maxTokens: 1_000, count: countTokens };
const verify = (text: string, bounds: Partial<typeof BOUNDS> = {}) =>
  verifySummary(text, { ...BOUNDS, ...bounds });

/** `count` unique words. */
function words(n: number, count: number): string {
  return Array.from({ length: count }, (_, index) => `w${n}x${index}`).join(' ');
}

const GOOD = `## Goal
Ana wants the login page of src/login.ts to work with port 8443, and nobody may touch the database.

## Errors met
@coder met ENOENT: no such file, open 'src/logn.ts'; the path was wrong.`;

describe('a good summary', () => {
  test.each<[string, string]>([
    ['as it is', GOOD],
    ['with space around it', `\n\n  ${GOOD}\n\n`],
    ['behind its thoughts', `<think>What matters?\n\nThe port.</think>\n\n${GOOD}`],
    ['behind two kinds of thoughts', `<analysis>a</analysis>\n<thinking>b</thinking>${GOOD}`],
    ['behind thoughts whose opening tag was swallowed', `The port matters.\n</think>\n\n${GOOD}`],
    ['in a code fence', '```markdown\n' + GOOD + '\n```'],
    ['in a code fence without a language', '```\n' + GOOD + '\n```\n'],
    ['in a summary tag', `<summary>\n${GOOD}\n</summary>`],
    ['in the marks that its input had', `<summary-0a1b2c3d>\n${GOOD}\n</summary-0a1b2c3d>`],
    ['in all of them', '```md\n<think>x</think>\n<summary>\n' + GOOD + '\n</summary>\n```'],
  ])('is taken %s', (_, written) => {
    expect(verify(written)).toEqual({ kind: 'ok', text: GOOD, cut: false });
  });

  test.each<[string, string]>([
    [
      'prose about tool syntax',
      `${GOOD}\nThe model of @coder wrote <tool_call> and <invoke name="x"> as text.`,
    ],
    [
      'a line that begins with a mark',
      `${GOOD}\n<tool_call> was written as text by @coder.\nIt was repaired.`,
    ],
    ['the same of another language', `${GOOD}\n<tool_call> 作为文本出现。\n已修复。`],
    [
      'a quoted call',
      `${GOOD}\n\nIt wrote:\n<tool_call>{"name":"read","arguments":{}}</tool_call>\n\nIt was told not to.`,
    ],
    [
      'a call as JSON in a code block',
      `${GOOD}\n\n\`\`\`json\n{"name":"read","arguments":{"path":"x"}}\n\`\`\`\nfailed twice.`,
    ],
    ['JSON that is no call', `${GOOD}\n{"name":"Ana","role":"owner"}`],
    ['a mention of thoughts', `${GOOD}\nThe tags <think> and </think> are shown to people.`],
    [
      'two code blocks',
      '```\nnpm test\n```\nis what Ana wants @coder to run before every commit, and then\n```\nnpm publish\n```',
    ],
    ['what somebody could not do', `@coder said: I'm sorry, I can't reach the server. ${GOOD}`],
  ])('may hold %s', (_, written) => {
    expect(verify(written)).toEqual({ kind: 'ok', text: written, cut: false });
  });
});

describe('rejected is', () => {
  test.each(['', '  \n\t', '…', '---\n***', '```\n```', '<think>only thoughts', '<summary></summary>'])(
    'what says nothing: %j',
    (written) => {
      expect(verify(written)).toEqual({ kind: 'rejected', why: 'empty' });
    },
  );

  test.each([
    '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>',
    '<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>',
    'Let me look.\n\n<function_calls>\n<invoke name="read">\n<parameter name="path">a</parameter>\n\n</invoke>\n</function_calls>',
    '<x:function_calls>\n<x:invoke name="read">\n<x:parameter name="path">a</x:parameter>',
    '<invoke name="write">\n<parameter name="text">A long text.\n\nWith paragraphs.\n\nAnd more.</parameter>\n</invoke>',
    '<function=read>\n<parameter=path>\na\n</parameter>\n</function>',
    '```tool_code\nprint(read(path="a"))\n```',
    '{"name": "read", "arguments": {"path": "a"}}',
    '{"arguments": {"path": "a"}, "name": "read"}',
    '```json\n{\n  "name": "read",\n  "parameters": {\n    "path": "}"\n  }\n}\n```',
    '[{"type": "function", "function": {"name": "read", "arguments": "{}"}}]',
    '{"tool_calls": [{"id": "1"}]}',
    '{"name": "write", "arguments": {"text": "it breaks off he',
    '{"type":"tool_use","id":"t1","name":"read","input":{"path":"a"}}',
    '[TOOL_CALLS][{"name": "read", "arguments": {}}]',
    '[TOOL_CALLS]read[ARGS]{"path": "a"}',
    '<|python_tag|>read.call(path="a")',
    '<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{"path":"a"}',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read',
    '<|channel|>commentary to=functions.read <|message|>{"path":"a"}',
    '<think>I should look.</think>\n<tool_call>{"name":"read","arguments":{}}</tool_call>',
  ])('a tool call: %j', (written) => {
    expect(verify(written)).toEqual({ kind: 'rejected', why: 'tool_syntax' });
    expect(verify(`I'll read it.\n\n${written}`)).toEqual({ kind: 'rejected', why: 'tool_syntax' });
  });

  test.each([
    "I'm sorry, but I can't help with that.",
    'I cannot assist with summarising this conversation.',
    'As an AI language model, I do not have access to it.',
    'Es tut mir leid, dabei kann ich nicht helfen.',
    'Lo siento, no puedo ayudar con eso.',
  ])('a refusal: %j', (written) => {
    expect(verify(written)).toEqual({ kind: 'rejected', why: 'refusal' });
  });

  test('a summary that is not smaller than its input', () => {
    const tokens = countTokens(GOOD);
    expect(verify(GOOD, { inputTokens: tokens })).toEqual({ kind: 'rejected', why: 'larger_than_input' });
    expect(verify(GOOD, { inputTokens: tokens + 1 })).toMatchObject({ kind: 'ok' });
  });

  test('a word or two for a long input, but not for a short one', () => {
    expect(verify('Done. All is well.')).toEqual({ kind: 'rejected', why: 'too_short' });
    expect(verify('Ana says hello.', { inputTokens: 100 })).toMatchObject({ kind: 'ok' });
  });

  test('an answer beyond the readable length, before it is examined', () => {
    const count = (): number => expect.fail('it was counted');
    const written = 'a summary of no end. '.repeat(30_000);
    expect(verify(written, { count })).toEqual({ kind: 'rejected', why: 'too_long' });
    expect(parseHandoff(`{"goal":"${written}"}`)).toBeNull();
    expect(parseHandoff(`{"goal":"${written.slice(0, 400_000)}"}`)).not.toBeNull();
  });

  test('a summary of more than twice its room', () => {
    const long = Array.from({ length: 60 }, (_, n) => `Paragraph ${n} ${words(n, 20)}`).join('\n\n');
    expect(verify(long)).toEqual({ kind: 'rejected', why: 'too_long' });
    expect(verify(words(1, 400).replaceAll(' ', ''), { maxTokens: 1_200 })).toEqual({
      kind: 'rejected',
      why: 'too_long',
    });
  });
});

test('a slightly overlong summary is cut at a paragraph, and never ends in a bare heading', () => {
  const sections = Array.from({ length: 30 }, (_, n) => `## Section ${n}\n\nIt says ${words(n, 10)} here.`);
  const written = sections.join('\n\n');
  for (let maxTokens = 800; maxTokens < countTokens(written); maxTokens += 37) {
    const verdict = verify(written, { maxTokens });
    if (verdict.kind !== 'ok') return expect.fail(verdict.why);
    expect(verdict.cut).toBe(true);
    expect(countTokens(verdict.text)).toBeLessThanOrEqual(maxTokens);
    expect(countTokens(verdict.text)).toBeGreaterThan(maxTokens - 100);
    expect(written.startsWith(`${verdict.text}\n\n`)).toBe(true);
    expect(verdict.text.endsWith('here.')).toBe(true);
  }
});

test('one long paragraph is cut at a line or a sentence', () => {
  const sentences = Array.from({ length: 120 }, (_, n) => `Ana wants ${words(n, 2)} to have the new port.`);
  for (const written of [sentences.join(' '), sentences.join('\n')]) {
    const verdict = verify(written);
    expect(verdict).toMatchObject({ kind: 'ok', cut: true });
    expect(verdict.kind === 'ok' && verdict.text).toMatch(/port\.$/);
  }
});

describe('a model that runs in circles is rejected', () => {
  const sentence = 'The user wants to know the total cost of the order with the new discount. ';
  test.each<[string, string]>([
    ['with one sentence fourteen times', `${GOOD}\n\n${sentence.repeat(14)}`],
    ['with one line', `${GOOD}\n${'- The port is 8443 and nobody touches the database.\n'.repeat(20)}`],
    ['with one word', `${GOOD} ${'and '.repeat(300)}`],
    [
      'in two sentences by turns',
      `${GOOD}\n${`${sentence}Nothing was decided about the harbour. `.repeat(8)}`,
    ],
    ['without spaces', '总成本需要按照新的折扣重新计算并告知用户。'.repeat(30)],
  ])('%s', (_, written) => {
    expect(verify(written)).toEqual({ kind: 'rejected', why: 'repetitive' });
  });

  test.each<[string, string]>([
    ['a short refrain', `${GOOD}\n${'Nothing is open. '.repeat(3)}`],
    [
      'items that begin alike',
      Array.from({ length: 20 }, (_, n) => `- Files modified: src/${words(n, 3)}.ts`).join('\n'),
    ],
  ])('and %s is taken', (_, written) => {
    expect(verify(written)).toMatchObject({ kind: 'ok' });
  });
});

test('an accepted summary is smaller than the input, within its room, and no tool call', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      GOOD,
      '```',
      '\n',
      '<think>',
      '</think>',
      '<summary>',
      '</summary>',
      '<tool_call>',
      '{"name":"a","arguments":{}}',
    ),
    fc.lorem({ maxCount: 30 }),
    fc.string({ unit: 'binary', maxLength: 20 }),
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 12 }),
      fc.integer({ min: 20, max: 400 }),
      (pieces, maxTokens) => {
        const verdict = verify(pieces.join('\n'), { maxTokens, inputTokens: 500 });
        if (verdict.kind !== 'ok') return;
        const tokens = countTokens(verdict.text);
        expect(tokens).toBeLessThanOrEqual(maxTokens);
        expect(tokens).toBeLessThan(500);
        expect(verdict.text.isWellFormed()).toBe(true);
        if (!verdict.cut) expect(toolSyntaxShare(verdict.text)).toBeLessThanOrEqual(0.5);
      },
    ),
    { numRuns: 500 },
  );
});

test('verification stays fast on hostile text', async () => {
  const units = [
    '<',
    '{',
    '[{',
    '```\n',
    '\n',
    ' ',
    '{"name":',
    '{"id":"","type":"",',
    '<think>',
    '</think>\n',
    '<think></think>',
    '<tool_call>\n',
    '\n## ',
  ];
  const judge = (text: string) => verifySummary(text, { ...BOUNDS, count: ({ length }) => length });
  expect(await cpuMsOf(() => units.map((unit) => judge(unit.repeat(20_000))))).toBeLessThan(3_000);
});
