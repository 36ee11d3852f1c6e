import { describe, expect, test } from 'vitest';
import { createScripted } from '../../src/providers/scripted.ts';
import { Script } from '../../src/providers/script.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { collectEvents, sampleRequest, textOf } from '../../packages/testing/src/provider-conformance.ts';
import type { ModelRequest } from '../../src/providers/provider.ts';
import { assistant, result, user } from './sent.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';

type Rules = Parameters<typeof Script.parse>[0];
const clock = createFakeClock();
const scripted = (...rules: object[]) => createScripted({ script: Script.parse({ rules } as Rules), clock });
const asked = (over: Partial<ModelRequest['trace']>) =>
  sampleRequest({ trace: { ...sampleRequest().trace, ...over } });
const say = async (provider: ReturnType<typeof scripted>, request?: ModelRequest) =>
  textOf(await collectEvents(provider, request));

test('with a length of pieces, arguments of calls come in pieces before the whole calls', async () => {
  const provider = scripted({ reply: 'ok', chunk: 4, calls: [{ name: 'add', args: { a: 1 } }] });
  const events = await collectEvents(provider);
  const id = 'call_conf_ana_1_1_0';
  expect(events.slice(1, -1)).toEqual([
    { type: 'text', delta: 'ok' },
    { type: 'calling', id, name: 'add', delta: '' },
    { type: 'calling', id, name: 'add', delta: '{"a"' },
    { type: 'calling', id, name: 'add', delta: ':1}' },
    { type: 'call', call: { id, name: 'add', args: '{"a":1}' } },
  ]);
});

describe('which rule answers', () => {
  test('the first one that matches', async () => {
    const provider = scripted(
      { when: { contains: 'bye' }, reply: 'A' },
      { when: { matches: '^hel+o$' }, reply: 'B' },
      { reply: 'C' },
    );
    expect(await say(provider, sampleRequest({ messages: [user('bye now')] }))).toBe('A');
    expect(await say(provider, sampleRequest({ messages: [user('helllo')] }))).toBe('B');
    expect(await say(provider, sampleRequest({ messages: [user('Helllo')] }))).toBe('C');
  });

  test('by agent, step and call', async () => {
    const provider = scripted(
      { when: { agent: 'bob' }, reply: 'bob' },
      { when: { step: 2 }, reply: 'step' },
      { when: { call: 2 }, reply: 'call' },
      { reply: 'else' },
    );
    expect(await say(provider, asked({ agent: 'bob' }))).toBe('bob');
    expect(await say(provider, asked({ step: 2 }))).toBe('step');
    expect(await say(provider, asked({ call: 2 }))).toBe('call');
    expect(await say(provider)).toBe('else');
  });

  test('by the number of the answer; steps with calls do not count', async () => {
    const provider = scripted({ when: { answer: 2 }, reply: 'second' }, { reply: 'number {{n}}' });
    const messages = [
      user('a'),
      assistant('', [['c', '{}']]),
      result('c', 'r'),
      assistant('first'),
      user('b'),
    ];
    expect(await say(provider, sampleRequest({ messages }))).toBe('second');
    expect(await say(provider)).toBe('number 1');
  });

  test('it tests the last text of a user or a tool', async () => {
    const provider = scripted({ when: { contains: '42' }, reply: 'got {{last}}' }, { reply: 'no' });
    const messages = [user('a'), assistant('', [['c', '{}']]), result('c', 'it is 42')];
    expect(await say(provider, sampleRequest({ messages }))).toBe('got it is 42');
  });

  test('if none matches, the failure names the request', async () => {
    const [, last] = await collectEvents(scripted({ when: { agent: 'bob' } }));
    expect(last).toMatchObject({
      type: 'failed',
      error: {
        code: 'provider_invalid_request',
        message: expect.stringContaining('agent ana, step 1, call 1, answer 1, last message "Hello"'),
      },
    });
  });
});

describe('the answer', () => {
  test('is the same for the same request', async () => {
    const provider = scripted({
      reply: 'x',
      calls: [
        { name: 'a', args: {} },
        { name: 'b', args: { q: '{{last}}' } },
      ],
    });
    const request = sampleRequest({ messages: [user('say "hi"\n')] });
    const events = await collectEvents(provider, request);
    expect(await collectEvents(provider, request)).toEqual(events);
    expect(events.filter(({ type }) => type === 'call')).toEqual([
      { type: 'call', call: { id: 'call_conf_ana_1_1_0', name: 'a', args: '{}' } },
      { type: 'call', call: { id: 'call_conf_ana_1_1_1', name: 'b', args: '{"q":"say \\"hi\\"\\n"}' } },
    ]);
  });

  test('is cut into chunks that split no surrogate pair', async () => {
    const events = await collectEvents(scripted({ reply: 'a👍b👍', chunk: 2 }));
    expect(events.flatMap((event) => (event.type === 'text' ? [event.delta] : []))).toEqual(['a👍', 'b👍']);
  });

  test('takes the configured time', async () => {
    const at: number[] = [];
    const events = collectEvents(
      scripted({ reply: 'abc', chunk: 1, delayMs: 100, chunkDelayMs: 10 }),
      sampleRequest(),
      {
        onEvent: () => at.push(clock.monotonic()),
      },
    );
    const start = clock.monotonic();
    await clock.advance(500);
    await events;
    expect(at.map((time) => time - start)).toEqual([0, 100, 110, 120, 120]);
  });

  test('ends in aborted when it is stopped during a delay', async () => {
    const controller = new AbortController();
    const events = collectEvents(scripted({ reply: 'abc', delayMs: 1000 }), sampleRequest(), {
      signal: controller.signal,
    });
    await clock.advance(10);
    controller.abort();
    expect((await events).map(({ type }) => type)).toEqual(['start', 'aborted']);
    expect(clock.sleeping()).toBe(0);
  });

  test('fails at the configured place with the configured code', async () => {
    const events = await collectEvents(
      scripted({ reply: 'abcdef', fail: { after: 3, code: 'provider_overloaded' } }),
    );
    expect(textOf(events)).toBe('abc');
    expect(events.at(-1)).toMatchObject({
      error: { code: 'provider_overloaded', message: 'scripted failure' },
    });
  });

  test('takes microseconds for a history of any length', async () => {
    const messages = Array.from({ length: 20_000 }, (_, i) => user(`message ${i}`));
    const provider = scripted({ reply: 'ok' });
    const request = sampleRequest({ messages });
    for (let i = 0; i < 200; i += 1) await collectEvents(provider, request);
    const cpuMs = await cpuMsOf(async () => {
      for (let i = 0; i < 1000; i += 1) await collectEvents(provider, request);
    });
    // About 5 ms in practice; scanning the messages would take seconds.
    expect(cpuMs).toBeLessThan(200);
    const end = (await collectEvents(provider, request)).at(-1);
    expect(end?.type === 'done' && end.usage.input).toBeGreaterThan(50_000);
  });
});

test.each([
  ['an expression that does not compile', { when: { matches: '(' } }, 'rules[0].when.matches'],
  ['a failure code nobody knows', { fail: { code: 'oops' } }, 'provider_overloaded'],
])('%s is refused at creation', (_, rule, words) => {
  const create = () => scripted(rule);
  expect(create).toThrow(
    expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining(words) }),
  );
});
