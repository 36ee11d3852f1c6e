import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventDraft } from '../../../src/events/index.ts';
import { formats } from '../src/index.ts';
import { collect, countOf, cut, jsonl, keyValueOf, told } from '../../../test/import/collect.ts';

const call = (id: string, args: unknown = '{}', name = 'f') => ({ id, function: { name, arguments: args } });
const asks = (...calls: unknown[]) => ({ role: 'assistant', content: '', tool_calls: calls });
const answers = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content });
const says = (content: unknown) => ({ role: 'user', content });

test('lines that are not JSON or not messages are counted with their line numbers, and the rest is imported', async () => {
  const text = jsonl(
    '{"role":"user","conte',
    says('kept'),
    '',
    '"massive error"',
    '42',
    '[1]',
    { role: 'user', contenst: 1 },
    { role: 'x', content: 'y' },
    'oops',
  );
  const { drafts, report } = await collect(text, { format: 'openai' });
  expect(told(drafts)).toEqual(['message User: kept']);
  expect(keyValueOf(report.skipped)).toEqual({
    not_json: 2,
    unknown_line: 3,
    empty_message: 1,
    unknown_role: 1,
  });
  expect(report.skipped[0]?.examples).toEqual(['line 1: {"role":"user","conte', 'line 9: oops']);
  expect(report.skipped[1]?.examples).toEqual(['line 4: massive error', 'line 5: 42', 'line 6: [1]']);
  expect(report.lines).toBe(8);
});

test('a repeated call id is made unique, together with its result', async () => {
  const { drafts, report } = await collect(
    jsonl(
      asks(call('a')),
      answers('a', '1'),
      asks(call('a')),
      answers('a', '2'),
      asks(call('a'), call('a')),
      answers('a', '3'),
      answers('a', '4'),
    ),
  );
  const ids = drafts.map((d) =>
    d.kind === 'step' ? d.body.calls.map((c) => c.id).join() : d.kind === 'tool.result' ? d.body.call : '',
  );
  expect(ids).toEqual(['a', 'a', 'a-2', 'a-2', 'a-3,a-4', 'a-3', 'a-4']);
  expect(keyValueOf(report.repaired)).toEqual({ duplicate_call: 3 });
});

test('a result belongs to the newest step with its call id; the older call stays without one', async () => {
  const { drafts, report } = await collect(
    jsonl(asks(call('a')), says('again'), asks(call('a')), answers('a', '2')),
  );
  expect(drafts[3]?.body).toMatchObject({ call: 'a-2' });
  expect(keyValueOf(report.repaired)).toEqual({ duplicate_call: 1, missing_result: 1 });
});

test('a result without a call is kept and counted, and no later call takes it for its own', async () => {
  const { drafts, report } = await collect(
    jsonl(says('x'), answers('z', 'lost'), asks(call('z')), answers('z', 'found'), {
      role: 'tool',
      content: 'whose?',
    }),
  );
  expect(drafts.map((d) => (d.kind === 'tool.result' ? d.body.call : d.kind))).toEqual([
    'message',
    'z',
    'step',
    'z-2',
  ]);
  expect(countOf(report.repaired, 'orphan_result')).toBe(1);
  expect(countOf(report.skipped, 'result_without_id')).toBe(1);
});

test.each([
  ['{"a": tru', '{"_raw":"{\\"a\\": tru"}'],
  ['', '{}'],
  [null, '{}'],
  ['"text"', '{"_raw":"\\"text\\""}'],
  [[1], '{"_raw":"[1]"}'],
])('arguments %j become the JSON text of an object', async (args, expected) => {
  const { drafts, report } = await collect(jsonl(asks(call('a', args))));
  expect(drafts[0]?.body).toMatchObject({ calls: [{ args: expected }] });
  expect(countOf(report.repaired, 'call_arguments')).toBe(1);
});

test('calls with huge ids or names, or without any, become valid events', async () => {
  const huge = 'x'.repeat(3000);
  const { drafts } = await collect(
    jsonl(asks(call(huge, '{}', huge), call(huge), { function: {} }, {}), answers(huge, 'r')),
  );
  for (const draft of drafts) expect(EventDraft.safeParse(draft).success).toBe(true);
  const [step, result] = drafts;
  expect(
    result?.kind === 'tool.result' && step?.kind === 'step' && result.body.call === step.body.calls[0]?.id,
  ).toBe(true);
});

test('lone surrogates and NUL survive', async () => {
  const { drafts } = await collect('{"role":"user","content":"a\\ud800b\\u0000c"}');
  expect(drafts[0]?.body).toEqual({ content: 'a\ud800b\u0000c' });
});

test('values nested a hundred thousand deep do not crash the import', async () => {
  const deep = '['.repeat(100_000) + ']'.repeat(100_000);
  const args = `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"a":${deep}}}}]}`;
  const { drafts } = await collect(
    jsonl(says('x'), deep, args, `{"role":"user","content":${deep}}`, says('y')),
  );
  expect(drafts.map((draft) => draft.kind).slice(0, 2)).toEqual(['message', 'step']);
});

test.each([
  ['an empty file', ''],
  ['a file of blank lines', ' \n\r\n\uFEFF\n'],
  ['a file of prose', 'Dear diary,\ntoday was fine.'],
  ['a file of other JSON', '{"silly":"this"}\n[1]\n42'],
])('%s is refused with the list of formats', async (_what, text) => {
  await expect(collect(text)).rejects.toMatchObject({
    code: 'import_invalid',
    message: expect.stringContaining(['troupe', ...formats.keys()].join(', ')),
  });
  await expect(collect(text, { format: 'pi' })).rejects.toMatchObject({ code: 'import_invalid' });
});

test('a speaker whose name is longer in lower case is imported with an id that fits', async () => {
  const turn = { speaker: 'İ'.repeat(90), dia_id: 'D1:1', text: 'Hello' };
  const { drafts } = await collect(JSON.stringify({ session_1: [turn] }), { format: 'locomo' });
  expect(drafts).toMatchObject([{ author: { id: 'i̇'.repeat(50), name: turn.speaker } }]);
  expect(EventDraft.safeParse(drafts[0]).error).toBeUndefined();
});

test('a file whose one line has more than 16 MiB is refused with the reason, with any beginning', async () => {
  const piece = 'x'.repeat(1024 * 1024);
  for (const start of ['{"a":"', '["', 'x']) {
    const chunks = [start, ...Array.from({ length: 17 }, () => piece)];
    const message = expect.stringMatching(/1 too large \(line 1: /);
    await expect(collect(chunks)).rejects.toMatchObject({ code: 'import_invalid', message });
  }
});

test('a record of more than 16 MiB, or of more than a million values, is left out and costs itself alone', async () => {
  const long = JSON.stringify(says('x'.repeat(17 * 1024 * 1024)));
  const many = `{"role":"user","content":[${'[],'.repeat(1_000_001)}1]}`;
  for (const layout of [
    jsonl(says('before'), long, many, says('after')),
    `[${JSON.stringify(says('before'))},${long},${many},${JSON.stringify(says('after'))}]`,
  ]) {
    const { drafts, report } = await collect(layout);
    expect(told(drafts)).toEqual(['message User: before', 'message User: after']);
    expect(keyValueOf(report.skipped)).toEqual({ too_large: 2 });
  }
});

test('a file that is padded with NUL, or was written in UTF-16, is read', async () => {
  const text = jsonl(says('été 🎉'), says('last'));
  const padding = '\0'.repeat(5_000);
  const utf16 = Buffer.from(`\uFEFF${text}`, 'utf16le');
  const bigEndian = Buffer.from(utf16).swap16();
  const sources = [
    [`${padding}${text.replace('\n', `\n${padding}`)}${padding}`],
    [utf16],
    [bigEndian],
    cut(text, [1, 3, 9]),
    [utf16.subarray(0, 1), utf16.subarray(1, 2), utf16.subarray(2)],
  ];
  for (const source of sources) {
    const { drafts, report } = await collect(source);
    expect(told(drafts)).toEqual(['message User: été 🎉', 'message User: last']);
    expect(report).toMatchObject({ lines: 2, skipped: [] });
  }
});

test('values that stand behind each other in one line are read, up to the first that is broken', async () => {
  const glued = [says('one'), says('a "}{" in it'), says('three')]
    .map((each) => JSON.stringify(each))
    .join('');
  const whole = await collect(`${JSON.stringify(says('zero'))}\n${glued}\n`);
  expect(told(whole.drafts)).toHaveLength(4);
  const broken = await collect(
    `${JSON.stringify(says('zero'))}\n${glued}{oops}${glued}\n${JSON.stringify(says('end'))}`,
  );
  expect(told(broken.drafts)).toHaveLength(5);
  expect(keyValueOf(broken.report.skipped)).toEqual({ not_json: 1 });
});

test('the same result once more is left out; another result of the same call is kept', async () => {
  const { drafts, report } = await collect(
    jsonl(asks(call('a')), answers('a', 'one'), answers('a', 'one'), answers('a', 'two')),
  );
  expect(drafts.map(({ kind }) => kind)).toEqual(['step', 'tool.result', 'tool.result']);
  expect(keyValueOf(report.skipped)).toEqual({ told_twice: 1 });
  expect(keyValueOf(report.repaired)).toEqual({ orphan_result: 1 });
});

test.each([
  [
    'only settings',
    [{ type: 'summary', summary: 'A title', leafUuid: 'u' }],
    /1 metadata \(line 1: summary\)/,
  ],
  ['roles that nobody knows', [{ messages: [{ role: 'x', content: 'y' }] }], /1 unknown role/],
  ['empty messages', [says(''), says(' ')], /2 empty message/],
  ['results of calls that are not there', [{ role: 'tool', content: 'whose?' }], /1 result without id/],
  ['a list without messages', [{ messages: [] }], /its one record had no words/],
  ['messages of an unknown shape', [{ messages: [{ from: 'a', words: 'b' }] }], /1 unknown line/],
])('a file that has %s is refused with what was found in it', async (_what, rows, message) => {
  await expect(collect(jsonl(...rows))).rejects.toMatchObject({
    code: 'import_invalid',
    message: expect.stringMatching(message),
  });
});

test('no text makes the import fail with an error other than import_invalid', async () => {
  const scrap = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    ',',
    ':',
    '\\',
    '\n',
    '{"role":"user","content":"x"}',
    '{"type":"user","uuid":"1","message":{"content":[',
    '{"messages_display":"user: a"}',
    '{"type":"message","message":',
    'null',
    '1',
    '{"troupe":1}',
  );
  await fc.assert(
    fc.asyncProperty(fc.array(scrap, { maxLength: 30 }), async (scraps) => {
      const code = await collect(scraps).then(
        () => 'import_invalid',
        (thrown: { code?: unknown }) => thrown.code,
      );
      expect(code).toBe('import_invalid');
    }),
    { numRuns: 500 },
  );
});

test('any JSON under the keys of a format gives valid events', async () => {
  const odd = fc.jsonValue({ maxDepth: 3 });
  const part = fc.record({
    type: fc.constantFrom('text', 'toolCall', 'tool_use', 'tool_result', 'thinking', 'image'),
    text: odd,
    id: odd,
    name: odd,
    input: odd,
    arguments: odd,
    content: odd,
    tool_use_id: odd,
  });
  const message = fc.record({
    role: fc.oneof(fc.constantFrom('user', 'assistant', 'tool', 'toolResult', 'system'), odd),
    content: fc.oneof(odd, fc.array(part)),
    tool_calls: odd,
    tool_call_id: odd,
    toolCallId: odd,
    model: odd,
    provider: odd,
    stopReason: fc.constantFrom('aborted', 'error', 'stop'),
  });
  const line = fc.record({
    type: fc.constantFrom('message', 'user', 'assistant', 'system'),
    uuid: odd,
    timestamp: odd,
    message: fc.oneof(message, odd),
    session_1: odd,
    troupe: fc.constant(undefined),
    messages_display: odd,
    role: odd,
  });
  const format = fc.constantFrom(
    'pi' as const,
    'openai' as const,
    'claude-code' as const,
    'dialogue' as const,
    'locomo' as const,
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(line, message), { minLength: 1 }), format, async (lines, chosen) => {
      const result = await collect(jsonl(...lines.map((l) => JSON.stringify(l))), { format: chosen }).catch(
        (thrown: { code?: unknown }) => thrown,
      );
      if ('code' in result) expect(result.code).toBe('import_invalid');
      if (!('drafts' in result)) return;
      for (const draft of result.drafts) expect(EventDraft.safeParse(draft).error).toBeUndefined();
    }),
    { numRuns: 500 },
  );
});

test('the boundaries of chunks make no difference, even inside a character', async () => {
  const chat = [
    says('café 中文 🎉 "quoted" \\ { [ , ] }'),
    asks(call('ä', '{"é":"🚀"}')),
    answers('ä', '∑\n√'),
  ];
  const layouts = [
    jsonl(...chat),
    JSON.stringify(chat, null, 2),
    JSON.stringify([{ traj: chat }, { messages: chat }]),
    `{"broken": "é\n${jsonl(...chat)}\n42`,
  ];
  for (const text of layouts) {
    const whole = await collect(text);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(), { maxLength: 20 }), async (positions) => {
        expect(await collect(cut(text, positions))).toEqual(whole);
      }),
    );
  }
});
