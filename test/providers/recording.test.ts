import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { NO_USAGE, turnId, type ConversationId } from '../../src/events/index.ts';
import type { ModelEvent, ModelRequest } from '../../src/providers/provider.ts';
import {
  openRecording,
  readRecording,
  record,
  createReplay,
  requestParts,
} from '../../src/providers/recording.ts';
import { createRedact } from '../../src/providers/redact.ts';
import { collectEvents, sampleRequest, textOf } from '../../packages/testing/src/provider-conformance.ts';
import { inOrder, modelOf, says, type TestModel } from '../support/engine-models.ts';

let folder = '';
let file = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'troupe-recording-'));
  file = path.join(folder, 'r.jsonl');
});
afterEach(() => rmSync(folder, { recursive: true }));

const SECRET = 'hunter2-hunter2';
const redact = createRedact([SECRET]);
const warnings: unknown[] = [];

function recording(model: TestModel) {
  const { name, capabilities } = model;
  const write = openRecording(file, { at: '2026-01-01T00:00:00Z', agents: { ana: { name, capabilities } } });
  const onWarning = (error: unknown) => void warnings.push(error);
  return record(model, { write, redact, clock: systemClock, onWarning });
}

function replaying() {
  return createReplay([readRecording(file)], redact).provider('ana', 'scripted');
}

interface Asked {
  conversation?: string;
  turn?: number;
  call?: number;
}

function ask(content: string, { conversation = 'conf', turn = 1, call = 1 }: Asked = {}): ModelRequest {
  const address = { tenant: 'default', conversation: conversation as ConversationId, agent: 'ana' };
  const trace = { conversation, agent: 'ana', turn: turnId(address as never, turn), step: 1, call };
  return sampleRequest({ messages: [{ role: 'user', content, seqs: [1] }], trace });
}

function failureOf(events: readonly ModelEvent[]): string {
  const last = events.at(-1);
  return last?.type === 'failed' ? `${last.error.code}: ${last.error.message}` : `no failure: ${last?.type}`;
}

test('no key reaches the file, be it in a request, in an answer, or split over two deltas', async () => {
  const spread = 'sk-ant-REDACTME0123456789abcdef';
  const model = inOrder(says('use ', spread.slice(0, 12), spread.slice(12), ' now'));
  const request = ask(`password ${SECRET}, header "Authorization: Bearer abcdefghijklmnop0123"`);
  await collectEvents(recording(model), request);
  const written = readFileSync(file, 'utf8');
  for (const secret of [SECRET, 'REDACTME', '456789abcdef', 'abcdefghijklmnop'])
    expect(written).not.toContain(secret);
  expect(written).toContain('Bearer [key]');
  expect(textOf(await collectEvents(replaying(), request))).toBe('use [key] now');
  expect(statSync(file).mode & 0o077).toBe(0);
});

test('pieces of calls and reasoning are passed on, and only the whole is recorded', async () => {
  const pieces: ModelEvent[] = [
    { type: 'thinking', delta: 'sk-ant-REDACT' },
    { type: 'thinking', delta: 'ME0123456789abcdef' },
    { type: 'calling', id: 'k', name: 'add', delta: '{"a":"sk-ant-REDACT' },
    { type: 'calling', id: 'k', name: 'add', delta: 'ME0123456789abcdef"}' },
  ];
  const call = { id: 'k', name: 'add', args: '{"a":"sk-ant-REDACTME0123456789abcdef"}' };
  const whole: ModelEvent[] = [
    { type: 'call', call },
    { type: 'done', stop: 'calls', usage: NO_USAGE },
  ];
  const events = await collectEvents(recording(inOrder([{ type: 'start' }, ...pieces, ...whole])), ask('go'));
  expect(events.slice(1)).toEqual([...pieces, ...whole]);
  expect(readFileSync(file, 'utf8')).not.toContain('REDACT');
  const again = await collectEvents(replaying(), ask('go'));
  expect(again).toEqual([
    { type: 'start' },
    { type: 'call', call: { ...call, args: '{"a":"[key]"}' } },
    whole[1],
  ]);
});

test('text that only resembles a key is kept', () => {
  const text = 'a task-list, a desk-0123456789abcdefghij, bearer of news, sk-short, none';
  expect(createRedact(['none', undefined])(text)).toBe(text);
});

test('a recording is continued, also after a torn line of a killed process', async () => {
  await collectEvents(recording(inOrder(says('one'))), ask('first'));
  appendFileSync(file, '{"request":{"mod');
  await collectEvents(recording(inOrder(says('two'))), ask('second'));
  appendFileSync(file, '{"request":');
  const again = replaying();
  expect(textOf(await collectEvents(again, ask('second')))).toBe('two');
  expect(textOf(await collectEvents(again, ask('first')))).toBe('one');
});

test('a damaged line in the middle is reported with its number', async () => {
  const model = recording(inOrder(says('one')));
  await collectEvents(model, ask('first'));
  appendFileSync(file, 'nonsense\n');
  await collectEvents(model, ask('second'));
  expect(() => readRecording(file)).toThrow(/r\.jsonl cannot be used: line 3: /);
});

test('a file that is not a recording is neither read nor written', () => {
  writeFileSync(file, '{"troupe":1,"conversation":"c"}\n');
  expect(() => readRecording(file)).toThrow(/it is not a recording/);
  expect(() => openRecording(file, { at: '', agents: {} })).toThrow(/the file exists and is not a recording/);
  expect(readFileSync(file, 'utf8')).toBe('{"troupe":1,"conversation":"c"}\n');
  writeFileSync(file, '{"recording":2,"at":"","agents":{}}\n');
  expect(() => readRecording(file)).toThrow(/its version is 2, and this Troupe reads up to 1/);
  writeFileSync(file, '');
  expect(() => readRecording(file)).toThrow(/it is empty/);
  expect(() => readRecording(path.join(folder, 'none'))).toThrow(/ENOENT/);
});

test('an unrecorded request is refused with the nearest one and the first difference', async () => {
  const model = recording(inOrder(says('one')));
  await collectEvents(model, ask('What is the weather in Graz today?', { turn: 4 }));
  await collectEvents(model, ask('Something else entirely'));
  const failure = failureOf(
    await collectEvents(replaying(), ask('What is the weather in Linz today?', { turn: 4 })),
  );
  expect(failure).toBe(
    'provider_invalid_request: the recording has no answer for this request of @ana (turn 4, step 1, call 1). ' +
      'The nearest is that of turn 4, step 1, call 1; the first difference: in messages[0] (user): ' +
      'recorded "What is the weather in Graz today?", asked "What is the weather in Linz today?"',
  );
  const more = ask('Something else entirely');
  const longer = {
    ...more,
    messages: [...more.messages, { role: 'user' as const, content: 'hm', seqs: [] }],
  };
  expect(failureOf(await collectEvents(replaying(), longer))).toContain(
    'this one goes on with messages[1] (user): "hm"',
  );
  expect(failureOf(await collectEvents(replaying(), { ...more, model: 'other' }))).toContain(
    'in model: recorded "m", asked "other"',
  );
});

test('times, fences and turn ids that Troupe writes may differ, and words may not', async () => {
  const text = (conversation: string, key: string, time: string, said: string) =>
    `<msg-${key}>\n${said}\n</msg-${key}>\ntime: ${time}\n[cut; all of it: @artifact/${conversation}:ana:3.1.0]\n#12 Ana (${time.slice(0, 10)}): x`;
  const told = text('old', '01234567', '2026-01-01T10:00Z', 'on 2026-01-01');
  await collectEvents(recording(inOrder(says('yes'))), ask(told, { conversation: 'old' }));
  const now = text('a.new:one', '89abcdef', '2027-12-31T23:59Z', 'on 2026-01-01');
  const asked = ask(now, { conversation: 'a.new:one' });
  expect(textOf(await collectEvents(replaying(), asked))).toBe('yes');
  const other = text('a.new:one', '89abcdef', '2027-12-31T23:59Z', 'on 2026-01-02');
  expect(failureOf(await collectEvents(replaying(), ask(other, { conversation: 'a.new:one' })))).toContain(
    'provider_invalid_request',
  );
});

test('equal requests are matched by their place, then by their conversation, then by order', async () => {
  const model = recording(
    inOrder(...['c1 first', 'c1 again', 'c2 first', 'later', 'later still'].map((text) => says(text))),
  );
  await collectEvents(model, ask('hi', { conversation: 'c1' }));
  await collectEvents(model, ask('hi', { conversation: 'c1', call: 2 }));
  await collectEvents(model, ask('hi', { conversation: 'c2' }));
  await collectEvents(model, ask('hi', { conversation: 'c3', turn: 9 }));
  await collectEvents(model, ask('hi', { conversation: 'c3', turn: 9 }));
  const replay = replaying();
  const said = async (asked: Asked) => textOf(await collectEvents(replay, ask('hi', asked)));
  expect(await said({ conversation: 'c2' })).toBe('c2 first');
  expect(await said({ conversation: 'c1', call: 2 })).toBe('c1 again');
  expect(await said({ conversation: 'new', call: 2 })).toBe('c1 again');
  expect(await said({ conversation: 'c3', turn: 9 })).toBe('later');
  expect(await said({ conversation: 'c3', turn: 9 })).toBe('later still');
});

test('sessions are recorded and replayed with their marks', async () => {
  const mark = { id: 's1', checkpoint: 'k1' };
  const model = modelOf(async function* () {
    yield { type: 'start' };
    yield { type: 'session', change: 'started', id: 's1' };
    yield { type: 'text', delta: 'hi' };
    yield { type: 'compacted' };
    const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
    yield { type: 'done', stop: 'end', usage, session: mark };
  });
  const request: ModelRequest = { ...ask('hi'), session: { kind: 'start' } };
  const original = await collectEvents(recording(model), request);
  expect(await collectEvents(replaying(), request)).toEqual(original);
  const resumed: ModelRequest = { ...request, session: { kind: 'resume', mark } };
  expect(failureOf(await collectEvents(replaying(), resumed))).toContain('recorded "start", asked "resume"');
});

test('a call whose reader leaves is recorded as aborted', async () => {
  const model = recording(inOrder(says('one', 'two')));
  for await (const event of model.stream(ask('hi'), { signal: new AbortController().signal }))
    if (event.type === 'text') break;
  expect(readRecording(file).calls[0]?.events.map(({ type }) => type)).toEqual(['start', 'text', 'aborted']);
});

test('a call that cannot be written is answered, and the operator is warned', async () => {
  const model = recording(inOrder(says('one')));
  rmSync(folder, { recursive: true });
  warnings.length = 0;
  expect(textOf(await collectEvents(model, ask('hi')))).toBe('one');
  expect(String(warnings[0])).toContain('ENOENT');
  folder = mkdtempSync(path.join(tmpdir(), 'troupe-recording-'));
});

test('the minute in a reminder makes no difference between requests', () => {
  const partsOf = (content: string) =>
    requestParts(sampleRequest({ messages: [{ role: 'user', content, seqs: [1] }] }));
  const task = 'task: answer the last message';
  const marked = (...lines: string[]) => ['hello', '', '[reminder #123456]', ...lines, '#123456'].join('\n');
  expect(partsOf('hello\n\n[2026-11-22 10:05 #123456]')).toEqual(partsOf('hello'));
  expect(partsOf(marked('time: 2026-11-22 10:05', task))).toEqual(partsOf(marked(task)));
  const local = 'time: 10:05 (Sun 11:05 Europe/Berlin)';
  expect(partsOf(marked(local, task))).toEqual(partsOf(marked(task)));
  expect(partsOf(marked('time: 10:05'))).toEqual(partsOf('hello'));
  expect(partsOf(marked('time: 10:05', task))).toEqual(partsOf(marked(task).replaceAll('123456', '654321')));
  expect(partsOf(marked(task))).not.toEqual(partsOf('hello'));
  const block = (time: string) =>
    `[new #123456]\n[Ana>@bob${time}] hi\n${time === '' ? '->' : `[->${time}]`} at 10:05\n#`;
  expect(partsOf(block(' 10:05'))).toEqual(partsOf(block('')));
  expect(partsOf(block(' 11-22 10:05'))).toEqual(partsOf(block('').replaceAll('123456', '654321')));
  expect(partsOf('hello\n\n[11-22 10:05]')).toEqual(partsOf('hello'));
  expect(partsOf(block('').replace('at 10:05', 'at 10:06'))).not.toEqual(partsOf(block('')));
});
