import { describe, expect, test } from 'vitest';
import { defineProvider, type ModelEvent } from '../../src/index.ts';
import { NO_USAGE } from '../../src/events/index.ts';
import { collectEvents, failureOf } from '../../packages/testing/src/provider-conformance.ts';

const SECRET = 'secret-of-test-4711';
const TEXT = { type: 'text', delta: 'Hi.' };
const done = (more: object = {}) => ({ type: 'done', stop: 'end', usage: NO_USAGE, ...more });

/** What a provider whose `read` gives these events says. JavaScript may give any. */
const said = (...events: unknown[]) =>
  saidBy(() =>
    (async function* () {
      yield* events;
    })(),
  );
const saidBy = (read: () => unknown) =>
  collectEvents(
    defineProvider({ name: 'mine', secrets: [SECRET], read: read as () => AsyncIterable<ModelEvent> }),
  );

describe('a provider of a program', () => {
  test.each([
    ['a second beginning', { type: 'start' }, /"start" has no place/],
    ['an abort that nobody asked for', { type: 'aborted' }, /"aborted" has no place/],
    ['a session, which it cannot have', { type: 'session', change: 'started', id: 's' }, /"session" has no/],
    ['an event that is none', { type: 'word' }, /"word" has no place/],
    ['an end of another kind', done({ stop: 'stop' }), /stops with "stop", and not with one of end, calls/],
    [
      'a piece of a call that is no text',
      { type: 'calling', id: 'k', name: 'n', delta: 1 },
      /is number, and no/,
    ],
    [
      'a piece of reasoning that is no text',
      { type: 'thinking' },
      /a piece of reasoning in the answer is undef/,
    ],
    ['reasoning of nobody', { type: 'reasoning', reasoning: { text: 'so' } }, /the provider of reasoning/],
  ])('fails with %s', async (_, event, message) => {
    const events = await said(TEXT, event, done());
    expect(events.map(({ type }) => type)).toEqual(['start', 'text', 'failed']);
    expect(failureOf(events)).toMatchObject({
      code: 'provider_invalid_reply',
      message: expect.stringMatching(message),
    });
  });

  test.each([
    ['none', undefined, 'input is undefined'],
    ['half of one', { input: 1, output: 1 }, 'cacheRead is undefined'],
    ['no numbers', { ...NO_USAGE, output: '3' }, 'output is "3"'],
  ])('whose usage is %s has none that counts', async (_, usage, doubt) => {
    expect((await said(TEXT, done({ usage }))).at(-1)).toMatchObject({
      type: 'done',
      usage: NO_USAGE,
      doubt,
    });
  });

  test.each([
    [
      'of a code that is none',
      { code: 'my_code', message: 'no' },
      { code: 'provider_failed', message: 'no' },
    ],
    ['without a reason', 'no', { code: 'provider_failed', message: 'the provider gives no reason' }],
    [
      'with a key',
      { code: 'provider_auth', message: `${SECRET}!` },
      { code: 'provider_auth', message: '[key]!' },
    ],
  ])('may end with a failure %s', async (_, error, expected) => {
    expect(failureOf(await said({ type: 'failed', error }))).toEqual(expected);
  });

  test.each([
    ['argumentBytes', { type: 'calling', id: 'k', name: 'n', delta: 'x'.repeat(100) }],
    ['reasoningBytes', { type: 'thinking', delta: 'x'.repeat(100) }],
  ])('is broken off at %s if its pieces do not end', async (limit, event) => {
    const endless = defineProvider({
      name: 'mine',
      replyLimits: { [limit]: 2_048 },
      async *read() {
        for (;;) yield event as ModelEvent;
      },
    });
    const { code, message } = failureOf(await collectEvents(endless));
    expect(code).toBe('provider_reply_too_long');
    expect(message).toContain(limit);
  });

  test('is broken off at the limit of calls if it begins ever more', async () => {
    const endless = defineProvider({
      name: 'mine',
      replyLimits: { calls: 10 },
      async *read() {
        for (let at = 0; ; at += 1) yield { type: 'calling', id: `k${at}`, name: 'n', delta: '' };
      },
    });
    expect(failureOf(await collectEvents(endless)).message).toContain('calls');
  });

  test('has failures of bounded length, without half of a key', async () => {
    const message = `${'x'.repeat(1_990)}${SECRET}${'x'.repeat(100_000)}`;
    const failure = failureOf(await said({ type: 'failed', error: { code: 'provider_auth', message } }));
    expect(failure.message).toHaveLength(2_000);
    expect(failure.message).not.toContain('secret');
  });

  test('fails if its read throws at once, or gives no stream', async () => {
    const throws = () => {
      throw Object.assign(new Error('no way'), { status: 401 });
    };
    expect(failureOf(await saidBy(throws))).toMatchObject({ code: 'provider_auth', message: '401 no way' });
    expect(failureOf(await saidBy(() => Promise.resolve(TEXT)))).toMatchObject({
      code: 'provider_invalid_reply',
      message: expect.stringContaining('write it as async *read') as string,
    });
  });
});
