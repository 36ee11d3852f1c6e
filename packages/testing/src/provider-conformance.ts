import assert from 'node:assert/strict';
import type { ModelEvent } from './troupe.ts';
import {
  type AddCase,
  type AddWithin,
  addExcess,
  collectEvents,
  endOf,
  failureOf,
  type MakeProvider,
  sampleRequest,
  textOf,
  wholeTypesOf,
} from './provider-scene.ts';
import type { ConformanceCase } from './conformance.ts';
import type { FakeReply } from './fake-server.ts';

export type { MakeProvider, ProviderFixture, ProviderScene } from './provider-scene.ts';

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

/** A provider that gives no pieces passes: watchers then see what it gives whole. */
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
