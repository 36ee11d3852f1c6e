import { expect, test } from 'vitest';
import * as z from 'zod';
import { HandoffSummary } from '../../src/events/index.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { createToolContext } from '../../src/testing/tool-context.ts';
import { hideInTools } from '../../src/runtime/secrets.ts';
import { runTool } from '../../src/tools/run-tool.ts';
import { defineTool, type Tool, type ToolContext } from '../../src/tools/tool.ts';

const clock = createFakeClock();
const context = createToolContext({ effect: 'c:a:1/1/0' });
const schema = z.object({ a: z.number(), b: z.string().default('x') });
const make = (run: (args: z.output<typeof schema>, context: ToolContext) => unknown, timeoutMs = 1000) =>
  defineTool({ name: 'probe', description: '', schema, timeoutMs, run: run as never });
const call = (args: string) => ({ id: 'c1', name: 'probe', args });
const run = (tool: Tool, args = '{"a":1}', over = {}) =>
  runTool(tool, call(args), { ...context, ...over }, { clock });

test('a tool gets parsed arguments and its context', async () => {
  const tool = make(({ a, b }, { effect }) => `${a}${b} ${effect}`);
  expect(await run(tool)).toEqual({ outcome: 'done', text: '1x c:a:1/1/0' });
});

test.each([
  ['NaN', '{"a":NaN}', 'not valid JSON'],
  ['half a text', '{"a":1', 'not valid JSON'],
  ['a list', '[1]', 'must be a JSON object'],
  ['null', 'null', 'must be a JSON object'],
  ['a wrong type', '{"a":"1"}', 'expected number'],
  ['nothing', '', 'expected number'],
])('%s as arguments fails with a text that says why', async (_, args, words) => {
  const result = await run(
    make(() => 'ran'),
    args,
  );
  expect(result.outcome).toBe('failed');
  expect(result.text).toContain(words);
});

test.each([
  ['undefined', undefined, '[the tool returned nothing]'],
  ['null', null, 'null'],
  ['a list', [1, { a: null }], '[1,{"a":null}]'],
  ['a date', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
  [
    'an instance with fields',
    new (class Point {
      x = 1;
    })(),
    '{"x":1}',
  ],
  ['data with a text among it', { text: 'hi', language: 'en' }, '{"text":"hi","language":"en"}'],
  [
    'data with a text and a request among it',
    { text: 'a', request: 'GET', n: 1 },
    '{"text":"a","request":"GET","n":1}',
  ],
  ['an object', { n: 1 }, '{"n":1}'],
  ['a bigint', { n: 9007199254740993n }, '{"n":9007199254740993}'],
  ['a number', 5, '5'],
  ['a lone surrogate', 'a\ud83d', 'a\ufffd'],
  ['a text object', { text: 'hi' }, 'hi'],
])('returning %s is done', async (_, returned, text) => {
  expect(await run(make(() => returned))).toEqual({ outcome: 'done', text });
});

test.each<[string, unknown, RegExp]>([
  ['a function', () => 1, /it is a function/],
  ['a Map', { found: new Map([[1, 2]]) }, /"found" is an empty Map/],
  ['a promise nobody awaited', { page: Promise.resolve(1) }, /"page" is an empty Promise/],
  ['an error', new Error('x'), /it is an empty Error/],
  ['no number', { ratio: 0 / 0 }, /"ratio" is NaN/],
  ['a cycle', cycle(), /circular/i],
])('returning %s is a failed result that says what is not JSON', async (_, returned, words) => {
  const ran = await run(make(() => returned));
  expect(ran).toMatchObject({ outcome: 'failed' });
  expect(ran.text).toMatch(/^probe failed: its result is not JSON \(/);
  expect(ran.text).toMatch(words);
});

function cycle(): object {
  const self: { self?: object } = {};
  self.self = self;
  return self;
}

test('a request is passed on as complete as the log requires', async () => {
  const request = { kind: 'handoff', to: 'bob', summary: { goal: 'g' } };
  const ran = await run(make(() => ({ text: 'ok', request })));
  expect(ran).toMatchObject({ outcome: 'done', text: 'ok', request });
  const summary = ran.request?.kind === 'handoff' ? ran.request.summary : null;
  expect(HandoffSummary.safeParse(summary)).toMatchObject({ data: summary });
});

test.each([
  ['without a receiver', { kind: 'handoff', summary: { goal: 'g' } }],
  ['without a summary', { kind: 'handoff', to: 'bob' }],
  ['of an unknown kind', { kind: 'explode', to: 'bob', summary: { goal: 'g' } }],
])('a request %s is a failed result', async (_, request) => {
  const ran = await run(make(() => ({ text: 'ok', request })));
  expect(ran).toMatchObject({ outcome: 'failed', text: expect.stringContaining('is not valid') as string });
  expect(ran.request).toBeUndefined();
});

test.each([
  [
    'an error',
    () => {
      throw new Error('disk full');
    },
    'probe failed: disk full',
  ],
  ['a rejection', () => Promise.reject(new Error('disk full')), 'probe failed: disk full'],
  ['a text', () => Promise.reject('just so' as unknown as Error), 'probe failed: just so'],
])('%s thrown is a failed result', async (_, thrown, text) => {
  expect(await run(make(thrown))).toEqual({ outcome: 'failed', text });
});

test('a schema that throws is a failed result', async () => {
  const tool = defineTool({
    name: 'probe',
    description: '',
    run: () => '',
    schema: z.object({}).refine(() => {
      throw new Error('bad check');
    }),
  });
  expect(await runTool(tool, call('{}'), context, { clock })).toMatchObject({ outcome: 'failed' });
});

test('a tool that ignores its signal is abandoned at the timeout', async () => {
  const signals: AbortSignal[] = [];
  const late = Promise.withResolvers<string>();
  const result = run(
    make((_, { signal }) => {
      signals.push(signal);
      return late.promise;
    }),
  );
  await clock.advance(999);
  expect(signals[0]?.aborted).toBe(false);
  await clock.advance(1);
  expect(await result).toMatchObject({
    outcome: 'failed',
    text: expect.stringContaining('longer than 1000 ms'),
  });
  expect(signals[0]?.aborted).toBe(true);
  late.reject(new Error('nobody listens'));
});

test('an abort of the turn settles the call at once', async () => {
  const controller = new AbortController();
  const signals: AbortSignal[] = [];
  const hang = make((_, { signal }) => {
    signals.push(signal);
    return new Promise(() => undefined);
  });
  const result = run(hang, '{"a":1}', { signal: controller.signal });
  await clock.advance(0);
  controller.abort();
  expect(await result).toMatchObject({ outcome: 'failed', text: expect.stringContaining('was aborted') });
  expect(signals[0]?.aborted).toBe(true);
  expect(
    await run(
      make(() => 'ran'),
      '{"a":1}',
      { signal: controller.signal },
    ),
  ).toMatchObject({ outcome: 'failed' });
});

test('no timer is left after a tool has finished', async () => {
  await run(make(() => 'ok'));
  expect(clock.sleeping()).toBe(0);
});

test('secrets of the process are hidden in every text of a result, and what is not JSON is still refused', async () => {
  const password = 'a"quoted\\secret-value';
  const env = { DB_PASSWORD: password };
  const wrapped = (returned: unknown) =>
    hideInTools({ agents: [], context: {} as never }, env, [])(make(() => returned));
  for (const returned of [
    password,
    { text: password },
    { text: password, more: [password, { [password]: JSON.stringify({ password }) }] },
  ]) {
    const { outcome, text } = await run(wrapped(returned));
    expect(outcome).toBe('done');
    expect(text).toContain('[DB_PASSWORD]');
    expect(text).not.toContain('secret-value');
  }
  expect(await run(wrapped(new Map([[password, 1]])))).toMatchObject({
    outcome: 'failed',
    text: expect.stringContaining('its result is not JSON'),
  });
});
