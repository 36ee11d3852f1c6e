import assert from 'node:assert/strict';
import {
  type ModelEvent,
  type ModelFailure,
  type ModelRequest,
  type Provider,
  type ReplyLimitSettings,
  type ConversationId,
  NO_USAGE,
  type PromptMessage,
  turnId,
  type Usage,
} from './troupe.ts';
import type { ConformanceCase } from './conformance.ts';
import type { FakeReply } from './fake-vendors.ts';
import { gzipSync } from 'node:zlib';

const TEXT = 'Grüße, 世界! 👩‍🚀 is a longer answer in several chunks.';
const USAGE = { input: 120, output: 30, cacheRead: 90, cacheWrite: 10, reasoning: 5 };
const CODES = [
  'provider_auth',
  'provider_quota',
  'provider_model_unknown',
  'provider_refused',
  'provider_invalid_request',
  'provider_rate_limited',
  'provider_overloaded',
  'provider_failed',
  'context_overflow',
] as const;

/** The contract of a provider of any vendor. `make` is called once per case. */
export function providerConformance(make: MakeProvider): ConformanceCase[] {
  const cases: ConformanceCase[] = [];
  const within: AddWithin = (limits) => (group, name, scene, run) =>
    cases.push({
      group,
      name,
      async run() {
        await using fixture = await make(scene, limits);
        if (fixture) await run(fixture, sampleRequest(fixture.model ? { model: fixture.model } : {}));
      },
    });
  const add = within({});
  addAnswers(add);
  addUsage(add);
  addAborts(add);
  addFailures(add);
  addExcess(within);
  return cases;
}

const CALLS = [
  { name: 'add', args: '{"a":1,"b":{"c":"ü 👍"}}' },
  { name: 'list', args: '{}' },
];

function addAnswers(add: AddCase): void {
  add('answers', 'text arrives in order', { text: TEXT, chunk: 3 }, async ({ provider }, request) => {
    const events = await collectEvents(provider, request);
    assert.equal(textOf(events), TEXT);
    assert.ok(events.filter(({ type }) => type === 'text').length > 1, 'the text came in one piece');
    assert.equal(endOf(events).stop, 'end');
  });

  add(
    'answers',
    'calls arrive whole and in order',
    { text: 'I will.', calls: CALLS, chunk: 2 },
    async (fixture, request) => {
      const events = await collectEvents(fixture.provider, request);
      const called = events.flatMap((event) => (event.type === 'call' ? [event.call] : []));
      assert.deepEqual(
        called.map(({ name, args }) => ({ name, args })),
        CALLS,
      );
      assert.equal(new Set(called.map(({ id }) => id)).size, 2);
      assert.ok(called.every(({ id }) => id !== ''));
      assert.equal(endOf(events).stop, 'calls');
      assert.equal(textOf(events), 'I will.');
    },
  );

  addPieces(add);

  add(
    'answers',
    'an answer may have calls only',
    { calls: CALLS.slice(0, 1) },
    async ({ provider }, request) => {
      const events = await collectEvents(provider, request);
      assert.deepEqual(wholeTypesOf(events), ['start', 'call', 'done']);
    },
  );

  for (const stop of ['length', 'refusal'] as const) {
    add('answers', `the stop reason ${stop} is kept`, { text: 'so', stop }, async ({ provider }, request) => {
      assert.equal(endOf(await collectEvents(provider, request)).stop, stop);
    });
  }

  add(
    'answers',
    'an unfinished call is not emitted',
    { calls: [{ name: 'add', args: '{"a":' }], stop: 'length' },
    async ({ provider }, request) => {
      const events = await collectEvents(provider, request);
      assert.ok(events.every(({ type }) => type !== 'call'));
      assert.equal(endOf(events).stop, 'length');
    },
  );
}

/** A provider that sends no pieces passes: watchers then see only complete parts. */
function addPieces(add: AddCase): void {
  const growing: FakeReply = { reasoning: 'Let me think.', calls: CALLS, chunk: 2 };
  add('answers', 'pieces say what is given whole', growing, async ({ provider }, request) => {
    const events = await collectEvents(provider, request);
    const thought = events.map((event) => (event.type === 'thinking' ? event.delta : '')).join('');
    const thoughts = events.flatMap((event) => (event.type === 'reasoning' ? [event.reasoning.text] : []));
    if (thought !== '') assert.deepEqual(thoughts, [thought]);
    for (const [at, event] of events.entries()) {
      if (event.type !== 'calling') continue;
      const whole = events.findIndex((each) => each.type === 'call' && each.call.id === event.id);
      assert.ok(whole > at, `the call ${event.id} has begun and is not given whole afterwards`);
    }
  });

  const cut: FakeReply = { calls: [{ name: 'add', args: '{"a":' }], stop: 'length', chunk: 2 };
  add(
    'answers',
    'pieces of a call that is never finished make no call',
    cut,
    async ({ provider }, request) => {
      const events = await collectEvents(provider, request);
      const said = events.map((event) => (event.type === 'calling' ? event.delta : '')).join('');
      assert.ok('{"a":'.startsWith(said), said);
      assert.deepEqual(wholeTypesOf(events), ['start', 'done']);
    },
  );
}

function addUsage(add: AddCase): void {
  add(
    'answers',
    'input in the usage includes cached tokens',
    { text: 'x', usage: USAGE },
    async (fixture, request) => {
      assert.deepEqual(endOf(await collectEvents(fixture.provider, request)).usage, USAGE);
    },
  );

  add(
    'answers',
    'an answer without usage completes',
    { text: 'x', usage: null },
    async ({ provider }, request) => {
      const { usage } = endOf(await collectEvents(provider, request));
      assert.ok(Object.values(usage).every((count) => Number.isSafeInteger(count) && count >= 0));
    },
  );

  add(
    'answers',
    'reasoning names its provider and model',
    { reasoning: 'Let me think.', text: 'x' },
    async (fixture, request) => {
      const events = await collectEvents(fixture.provider, request);
      const thoughts = events.flatMap((event) => (event.type === 'reasoning' ? [event.reasoning] : []));
      const [thought] = thoughts;
      assert.equal(thoughts.length, 1);
      assert.equal(thought?.text, 'Let me think.');
      assert.equal(thought?.provider, fixture.provider.name);
      assert.equal(thought?.model, request.model);
    },
  );
}

function addAborts(add: AddCase): void {
  add('aborts', 'an abort before the call sends nothing', { text: TEXT }, async (fixture, request) => {
    const events = await collectEvents(fixture.provider, request, { signal: AbortSignal.abort() });
    assert.equal(events.at(-1)?.type, 'aborted');
    assert.equal(fixture.requests?.() ?? 0, 0);
  });

  add('aborts', 'an abort before the answer', { hang: true }, async (fixture, request) => {
    const controller = new AbortController();
    const collected = collectEvents(fixture.provider, request, { signal: controller.signal });
    const seen = await fixture.arrived?.();
    controller.abort();
    assert.deepEqual(
      (await collected).map(({ type }) => type),
      ['start', 'aborted'],
    );
    await seen?.gone;
  });

  const hanging: FakeReply = { text: TEXT, chunk: 4, breaks: { after: 2, how: 'hang' } };
  add('aborts', 'an abort within the answer', hanging, async (fixture, request) => {
    const controller = new AbortController();
    const events = await collectEvents(fixture.provider, request, {
      signal: controller.signal,
      onEvent: ({ type }) => type === 'text' && controller.abort(),
    });
    assert.equal(events.at(-1)?.type, 'aborted');
    assert.ok(TEXT.startsWith(textOf(events)) && textOf(events) !== '');
    const seen = await fixture.arrived?.();
    await seen?.gone;
  });

  add('aborts', 'a consumer that stops reading ends the request', hanging, async (fixture, request) => {
    const { signal } = new AbortController();
    for await (const event of fixture.provider.stream(request, { signal })) if (event.type === 'text') break;
    const seen = await fixture.arrived?.();
    await seen?.gone;
  });

  add('aborts', 'a call after an aborted one works', { text: TEXT }, async ({ provider }, request) => {
    const controller = new AbortController();
    const abort = ({ type }: ModelEvent) => type === 'text' && controller.abort();
    await collectEvents(provider, request, { signal: controller.signal, onEvent: abort });
    assert.equal(textOf(await collectEvents(provider, request)), TEXT);
  });
}

function addFailures(add: AddCase): void {
  for (const how of ['end', 'cut'] as const) {
    const breaks = { after: 2, how };
    add(
      'failures',
      `a broken stream (${how}) is truncated after its text`,
      { text: TEXT, chunk: 4, breaks },
      async ({ provider }, request) => {
        const events = await collectEvents(provider, request);
        assert.equal(failureOf(events).code, 'provider_truncated');
        assert.equal(textOf(events), Array.from(TEXT).slice(0, 8).join(''));
      },
    );
  }

  add(
    'failures',
    'a reset connection is truncated',
    { text: TEXT, breaks: { after: 1, how: 'reset' } },
    async (fixture, request) => {
      const { code } = failureOf(await collectEvents(fixture.provider, request));
      // A reset can arrive before the headers.
      assert.ok(code === 'provider_truncated' || code === 'provider_unreachable', code);
    },
  );

  const broken: FakeReply = {
    calls: [{ name: 'add', args: '{"a":1,"b":2}' }],
    chunk: 3,
    breaks: { after: 3, how: 'end' },
  };
  add('failures', 'a stream that ends in a call emits no call', broken, async ({ provider }, request) => {
    const events = await collectEvents(provider, request);
    assert.deepEqual(wholeTypesOf(events), ['start', 'failed']);
    assert.equal(failureOf(events).code, 'provider_truncated');
  });

  add('failures', 'a vendor that is down is unreachable', 'unreachable', async ({ provider }, request) => {
    assert.equal(failureOf(await collectEvents(provider, request)).code, 'provider_unreachable');
  });

  for (const code of CODES) {
    add('failures', `${code} is recognized`, { error: { code } }, async (fixture, request) => {
      const failure = failureOf(await collectEvents(fixture.provider, request));
      assert.equal(failure.code, code);
      assert.notEqual(failure.message, '');
      assert.equal(fixture.requests?.() ?? 1, 1, 'the adapter retried');
    });
  }

  const limited: FakeReply = { error: { code: 'provider_rate_limited', retryAfter: '7' } };
  add('failures', 'retry-after is read', limited, async ({ provider }, request) => {
    assert.equal(failureOf(await collectEvents(provider, request)).retryAfterMs, 7000);
  });

  const late: FakeReply = { text: TEXT, chunk: 4, error: { code: 'provider_failed', after: 2 } };
  add('failures', 'an error within the stream keeps the text', late, async ({ provider }, request) => {
    const events = await collectEvents(provider, request);
    assert.equal(failureOf(events).code, 'provider_failed');
    assert.equal(textOf(events), Array.from(TEXT).slice(0, 8).join(''));
  });
}

/** A provider whose answers follow the scene. */
export interface ProviderFixture extends AsyncDisposable {
  /** The provider under test. */
  provider: Provider;
  /** Name of the model. */
  model?: string;
  /** Number of requests the vendor has received; absent without a vendor. */
  requests?: () => number;
  /** Resolves when the vendor has received the first request. */
  arrived?(): Promise<{ gone: Promise<void> }>;
  /** The adapter reaches the vendor through a program, which may change answers. */
  isProgram?: true;
}

/** `unreachable` is a vendor that does not listen. */
export type ProviderScene = FakeReply | 'unreachable';

/** Null if the scene does not apply to the adapter: its cases then pass unrun. */
export type MakeProvider = (
  scene: ProviderScene,
  replyLimits: ReplyLimitSettings,
) => Promise<ProviderFixture | null>;

type AddCase = (
  group: string,
  name: string,
  scene: ProviderScene,
  run: (fixture: ProviderFixture, request: ModelRequest) => Promise<void>,
) => void;
/** Adds cases for a provider with these reply limits. */
type AddWithin = (limits: ReplyLimitSettings) => AddCase;

const ADDRESS = { tenant: 'default', conversation: 'conf' as ConversationId, agent: 'ana' } as const;

/** A small valid request; tests override its fields. */
export function sampleRequest(over: Partial<ModelRequest> = {}): ModelRequest {
  const messages: PromptMessage[] = [
    { role: 'system', content: 'You are Ana.', seqs: [] },
    { role: 'user', content: 'Hello', seqs: [1] },
  ];
  const trace = { ...ADDRESS, turn: turnId(ADDRESS as Parameters<typeof turnId>[0], 1), step: 1, call: 1 };
  return {
    model: 'm',
    messages,
    tools: [],
    breakpoints: [],
    maxOutputTokens: 100,
    cacheKey: 'default/conf/ana',
    ...over,
    trace: over.trace ?? trace,
  };
}

/** All events of one call, checked for legal order; `onEvent` receives each as it arrives. */
export async function collectEvents(
  provider: Provider,
  request: ModelRequest = sampleRequest(),
  { signal = new AbortController().signal, onEvent }: CollectOptions = {},
): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of provider.stream(request, { signal })) {
    events.push(event);
    onEvent?.(event);
  }
  assertLegal(events);
  return events;
}

/** Options of `collectEvents`. */
export interface CollectOptions {
  /** Aborts it. */
  signal?: AbortSignal;
  /** Called with each event. */
  onEvent?: (event: ModelEvent) => void;
}

const LEGAL_ORDER =
  /^start( session)?( (begun|text|thinking|reasoning|calling|call|compacted))* (done|failed|aborted)$/;

function assertLegal(events: readonly ModelEvent[]): void {
  const order = events.map(({ type }) => type).join(' ');
  assert.match(order, LEGAL_ORDER);
  assertPieces(events);
}

/** Checks that the pieces, joined, are the complete parts. */
function assertPieces(events: readonly ModelEvent[]): void {
  const written = new Map<string, { name: string; args: string }>();
  for (const event of events) {
    if (event.type === 'calling') {
      const { id, name, delta } = event;
      written.set(id, { name, args: (written.get(id)?.args ?? '') + delta });
    }
    if (event.type !== 'call' || !written.has(event.call.id)) continue;
    const { id, name, args } = event.call;
    const told = written.get(id);
    assert.equal(told?.name, name, `the pieces of the call ${id} name another tool`);
    // For a call without arguments, some vendors send none at all.
    assert.equal(told?.args || '{}', args || '{}', `the pieces of the call ${id} are not its arguments`);
  }
}

/** The types of the complete events. A provider may leave out pieces. */
function wholeTypesOf(events: readonly ModelEvent[]): string[] {
  return events.map(({ type }) => type).filter((type) => type !== 'thinking' && type !== 'calling');
}

export function endOf(events: readonly ModelEvent[]): Extract<ModelEvent, { type: 'done' }> {
  const last = events.at(-1);
  assert.ok(last?.type === 'done', `ended in ${JSON.stringify(last)?.slice(0, 200)}`);
  return last;
}

export function failureOf(events: readonly ModelEvent[]): ModelFailure {
  const last = events.at(-1);
  assert.ok(last?.type === 'failed', `ended in ${JSON.stringify(last)?.slice(0, 200)}`);
  return last.error;
}

/** The text of a stream of events. */
export function textOf(events: readonly ModelEvent[]): string {
  return events.map((event) => (event.type === 'text' ? event.delta : '')).join('');
}

const SSE = { 'content-type': 'text/event-stream' };
const LONG = 'ü word '.repeat(1_000);

/** Cases about endless or false data of a broken or hostile vendor. Each has a limit, which the error names. */
function addExcess(within: AddWithin): void {
  const add = within({});
  const tooLong = (name: string, scene: FakeReply, limits: ReplyLimitSettings) =>
    within(limits)('excess', `${name} ends the answer`, scene, async ({ provider }, request) => {
      const events = await collectEvents(provider, request);
      const { code, message } = failureOf(events);
      assert.equal(code, 'provider_reply_too_long', message);
      assert.ok(message.includes(Object.keys(limits)[0] ?? ''), message);
      assert.ok(scene.text === undefined || scene.text.startsWith(textOf(events)));
    });

  tooLong('endless text', { text: LONG, chunk: 50 }, { textBytes: 2_048 });
  const args = JSON.stringify({ a: LONG });
  tooLong('an endless call', { calls: [{ name: 'add', args }], chunk: 200 }, { argumentBytes: 2_048 });
  const calls = Array.from({ length: 6 }, (_, index) => ({ name: `add${index}`, args: '{}' }));
  tooLong('one call too many', { calls }, { calls: 5 });
  tooLong('an answer that takes too long', { text: LONG, chunk: 1, delayMs: 5 }, { totalMs: 150 });

  const raw = (body: string | Uint8Array, headers: Record<string, string> = SSE): FakeReply => ({
    raw: { status: 200, headers, body },
  });
  const line = `data: "${'x'.repeat(100_000)}`;
  tooLong('an endless line', raw(line), { eventBytes: 16_384 });
  tooLong('an endless event', raw(`${'data: 1\n'.repeat(20_000)}`), { eventBytes: 16_384 });
  tooLong('a stream without events', raw(': no\n\n'.repeat(50_000)), { receivedBytes: 65_536 });
  const bomb = gzipSync(': no\n\n'.repeat(500_000));
  tooLong('a decompression bomb', raw(bomb, { ...SSE, 'content-encoding': 'gzip' }), {
    receivedBytes: 65_536,
  });

  add(
    'excess',
    'the message of a huge error body is its beginning',
    { raw: { status: 500, headers: {}, body: `it burns ${'!'.repeat(3_000_000)}` } },
    async ({ provider }, request) => {
      const { code, message } = failureOf(await collectEvents(provider, request));
      assert.equal(code, 'provider_failed');
      assert.match(message, /it burns/);
      assert.ok(message.length < 4_000);
    },
  );

  addFalseUsage(add);
  addRedirects(add);
}

const FALSE_USAGE: Readonly<Record<string, Partial<Record<keyof Usage, unknown>>>> = {
  'too much input': { input: 9e15, output: 1 },
  'too much output': { input: 10, output: 9e15 },
  'too much cache': { input: 10, cacheRead: 1e18 },
  'negative tokens': { input: -5_000, output: -1 },
  'half tokens': { input: 10.5 },
};

function addFalseUsage(add: AddCase): void {
  for (const [name, reported] of Object.entries(FALSE_USAGE)) {
    const usage = { ...NO_USAGE, ...reported } as Usage;
    add('excess', `a usage with ${name} is ignored`, { text: 'x', usage }, async (fixture, request) => {
      const last: ModelEvent | undefined = (await collectEvents(fixture.provider, request)).at(-1);
      // A program between the adapter and the vendor may fail on such a usage.
      if (last?.type === 'failed' && fixture.isProgram) return;
      assert.ok(last?.type === 'done', `ended in ${JSON.stringify(last)}`);
      if (fixture.isProgram && last.doubt === undefined) return assertSmall(last.usage);
      assert.deepEqual(last.usage, NO_USAGE);
      assert.ok(last.doubt, 'the false usage is not reported');
    });
  }
}

/** Checks the usage as changed by a program. */
function assertSmall(usage: Usage): void {
  for (const count of Object.values(usage))
    assert.ok(Number.isSafeInteger(count) && count >= 0 && count <= 100_000_000, JSON.stringify(usage));
}

/** An address without a server. */
const ELSEWHERE = 'http://127.0.0.1:9';

function addRedirects(add: AddCase): void {
  for (const status of [301, 302, 303, 307, 308]) {
    add(
      'redirects',
      `${status} to another origin is refused, with both addresses`,
      { raw: { status, headers: { location: `${ELSEWHERE}/v1/stolen?q=1` }, body: '' } },
      async ({ provider, requests }, request) => {
        const { code, message } = failureOf(await collectEvents(provider, request));
        assert.equal(code, 'provider_redirected', message);
        assert.ok(message.includes(ELSEWHERE), message);
        assert.ok(!message.includes('stolen'), message);
        assert.equal(requests?.() ?? 1, 1);
      },
    );
  }
}
