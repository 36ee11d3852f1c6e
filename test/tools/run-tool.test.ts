import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { HandoffSummary } from '../../src/events/index.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { createToolContext } from '../../packages/testing/src/tool-context.ts';
import { hideInTools } from '../../src/library/runtime/secrets.ts';
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

class Empty {}

const NOTE =
  '[The tool ran. The parts of its result that stand in brackets could not be read: a tool returns a text or plain data.]';

/** What is read of odd results. `[…]` says that something could not be. */
test.each<[what: string, returned: () => unknown, text: string]>([
  ['a Map with texts as keys', () => ({ found: new Map([['a', 1n]]) }), '{"found":{"a":1}}'],
  ['a Map with other keys', () => new Map([[1, { x: new Set([2]) }]]), '[[1,{"x":[2]}]]'],
  ['a Set', () => new Set(['a', 'b']), '["a","b"]'],
  [
    'an error',
    () => ({ error: Object.assign(new TypeError('no', { cause: new Error('why') }), { code: 'E1' }) }),
    '{"error":{"name":"TypeError","message":"no","code":"E1","cause":{"name":"Error","message":"why"}}}',
  ],
  ['an error by itself', () => new Error('x'), '{"name":"Error","message":"x"}'],
  ['no number', () => ({ ratio: 0 / 0, most: Infinity }), '{"ratio":"NaN","most":"Infinity"}'],
  ['a pattern', () => ({ by: /a+/g }), '{"by":"/a+/g"}'],
  ['a date in a Map', () => new Map([['at', new Date(0)]]), '{"at":"1970-01-01T00:00:00.000Z"}'],
  ['a date that is none', () => new Map([['at', new Date(NaN)]]), '{"at":null}'],
  ['bytes that are text', () => ({ file: Buffer.from('grüß') }), '{"file":"grüß"}'],
  ['bytes by themselves', () => new TextEncoder().encode('hello'), '"hello"'],
  ['a function inside', () => ({ n: 1, run: () => 1 }), '{"n":1,"run":"[a function]"}'],
  ['a symbol', () => [Symbol('x')], '["[a symbol]"]'],
  ['bytes that are no text', () => ({ file: Buffer.from([0xff, 0xfe]) }), '{"file":"[Buffer of 2 bytes]"}'],
  ['other arrays of numbers', () => new Float64Array(2), '"[Float64Array of 16 bytes]"'],
  [
    'a promise nobody awaited',
    () => ({ page: Promise.resolve(1) }),
    '{"page":"[Promise: nothing in it can be read]"}',
  ],
  ['an instance without fields', () => new Empty(), '"[Empty: nothing in it can be read]"'],
  ['a stream of the web', () => new ReadableStream(), '"[ReadableStream: nothing in it can be read]"'],
  ['a response', () => new Response('x'), '"[Response: nothing in it can be read]"'],
  [
    'a stream of Node',
    () => new Map([['s', Readable.from(['x'])]]),
    '{"s":"[Readable: nothing in it can be read]"}',
  ],
  ['a generator', () => ({ all: numbers() }), '{"all":"[Generator: nothing in it can be read]"}'],
  ['a cycle', cycle, '{"self":"[the object that this is in]"}'],
  [
    'a getter that throws',
    () => ({
      n: 1,
      get bad() {
        throw new Error('not yet');
      },
    }),
    '{"n":1,"bad":"[it cannot be read: not yet]"}',
  ],
  [
    'a toJSON that throws',
    () => ({
      n: 1,
      bad: {
        toJSON() {
          throw new Error('no');
        },
      },
    }),
    '{"n":1,"bad":"[it cannot be read: no]"}',
  ],
  ['one object twice', () => twice(new Set([1])), '{"a":[1],"b":[1]}'],
])('%s is read as far as it can be, and the call is done', async (_, returned, text) => {
  const ran = await run(make(returned));
  expect(ran).toEqual({
    outcome: 'done',
    text: text.includes('[') && /"\[/.test(text) ? `${text}\n${NOTE}` : text,
  });
});

test.each<[what: string, returned: () => unknown, words: string]>([
  ['a function by itself', () => () => 1, '[a function]'],
  ['too many levels', () => deep(20_000), 'cut: more than 64 levels'],
  ['a million values in a Set', () => new Set(Array.from({ length: 1_000_000 }, (_, n) => n)), 'cut: '],
  ['a long text in a Map', () => new Map([['a', 'x'.repeat(10_000_000)]]), 'more characters'],
  ['one object in others many times', () => wide(new Set([1])), 'too many values'],
  ['one plain object in others many times', () => wide({ n: 1 }), 'too many values'],
  ['an object that is no longer there', () => revoked(), 'it cannot be read'],
])('%s is cut at a bound, and the call is done', async (_, returned, words) => {
  const ran = await run(make(returned));
  expect(ran.outcome).toBe('done');
  expect(ran.text).toContain(words);
  expect(ran.text).toContain(NOTE);
  expect(ran.text.length).toBeLessThan(5_000_000);
});

function* numbers() {
  for (;;) yield 1;
}

function cycle(): object {
  const self: { self?: object } = {};
  self.self = self;
  return self;
}

function twice(it: unknown): object {
  return { a: it, b: it };
}

function deep(levels: number): object {
  let it: object = {};
  for (let level = 0; level < levels; level += 1) it = { it };
  return it;
}

/** 2^60 values in 60 objects. */
function wide(it: object): object {
  for (let level = 0; level < 60; level += 1) it = { a: it, b: it };
  return it;
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return new Map([['gone', proxy]]);
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

test('secrets of the process are hidden in every text of a result, also of an odd one', async () => {
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
  for (const odd of [
    new Map([[password, [password]]]),
    new Set([password]),
    new Error(password),
    Buffer.from(password),
  ]) {
    const { outcome, text } = await run(wrapped(odd));
    expect(outcome).toBe('done');
    expect(text).toContain('[DB_PASSWORD]');
    expect(text).not.toContain('secret-value');
  }
});
