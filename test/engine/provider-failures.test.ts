import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { MAX_TRIES } from '../../src/machines/agent-lifecycle.ts';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import type { ModelFailure, Provider } from '../../src/providers/provider.ts';
import {
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
  type FakeHandler,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { breaks, bytes, inOrder, says, shown, times } from '../support/engine-models.ts';
import { openStage, type Stage, turns } from '../support/engine-stage.ts';
import { openTroupe } from '../support/mode.ts';
import { untilHolds } from '../support/until-holds.ts';

async function kindsOf(stage: Stage): Promise<string[]> {
  return (await stage.events('c')).filter(({ turn }) => turn !== undefined).map(({ kind }) => kind);
}

test('a call that breaks off is reported as an error and repeated with the identical request', async () => {
  const model = inOrder(breaks('provider_truncated', 'half'), breaks('provider_rate_limited'), says('whole'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(await kindsOf(stage)).toEqual(['turn.started', 'error', 'error', 'message', 'turn.done']);
  expect(model.requests.map(({ trace }) => trace.call)).toEqual([1, 2, 3]);
  expect(new Set(model.requests.map(bytes)).size).toBe(1);
  const errors = (await stage.events('c')).filter(({ kind }) => kind === 'error');
  expect(errors).toMatchObject([
    { body: { code: 'provider_truncated', partial: 'half', step: 1 } },
    { body: { code: 'provider_rate_limited', partial: '', step: 1 } },
  ]);
  expect(await stage.check('c')).toEqual([]);
});

test('a failure that no retry can fix ends the turn at once', async () => {
  const model = inOrder(breaks('provider_auth'), says('well'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(model.requests).toHaveLength(1);
  expect(await kindsOf(stage)).toEqual(['turn.started', 'error', 'turn.failed']);
  expect((await stage.events('c')).at(-1)).toMatchObject({ body: { code: 'provider_auth', covers: [1] } });
  expect(await stage.check('c')).toEqual([]);
});

test('when all tries are used up the turn fails with its words, which the next prompt shows once', async () => {
  const model = inOrder(
    ...Array.from({ length: MAX_TRIES }, () => breaks('provider_overloaded', 'so far')),
    says('now'),
  );
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(model.requests).toHaveLength(MAX_TRIES);
  const failed = (await stage.events('c')).at(-1);
  expect(failed).toMatchObject({
    kind: 'turn.failed',
    body: { code: 'provider_overloaded', partial: 'so far' },
  });
  await stage.say('c', 'continue', ['bo']);
  await stage.quiet();
  const prompt = shown(model.requests.at(-1));
  expect(times(prompt, 'so far')).toBe(1);
  expect(times(prompt, '[this turn failed: provider_overloaded]')).toBe(1);
  expect(await stage.check('c')).toEqual([]);
});

test('a provider that throws against its contract fails the turn, not the process, and the next message works', async () => {
  const model = inOrder(says('fine'));
  let threw = false;
  const broken: Provider = {
    ...model,
    stream(request, options) {
      if (threw) return model.stream(request, options);
      threw = true;
      throw new RangeError('a bug of the adapter');
    },
  };
  const stage = await openStage({ agents: [{ id: 'bo', model: broken }] });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect((await stage.events('c')).at(-1)).toMatchObject({ kind: 'turn.failed', body: { code: 'internal' } });
  expect(stage.warnings).not.toEqual([]);
  await stage.say('c', 'again', ['bo']);
  await stage.quiet();
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(await stage.check('c')).toEqual([]);
});

test('a watcher that throws disturbs neither the stream nor the log', async () => {
  const stage = await openStage({ agents: [{ id: 'bo', model: inOrder(says('a', 'b')) }] });
  stage.troupe.watch(() => {
    throw new Error('a broken watcher');
  });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
  expect(stage.warnings.length).toBeGreaterThan(0);
  expect(await stage.check('c')).toEqual([]);
});

test('a prompt that fits the window by no count fails the turn and names the largest layers', async () => {
  const model = inOrder(says('never'));
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'x'.repeat(2_000_000), ['bo']);
  await stage.quiet();
  expect(model.requests).toHaveLength(0);
  const failed = (await stage.events('c')).at(-1);
  expect(failed).toMatchObject({ kind: 'turn.failed', body: { code: 'context_overflow' } });
  expect(failed?.kind === 'turn.failed' && failed.body.message).toContain('trigger');
});

interface Vendor {
  start: (handler: FakeHandler) => Promise<FakeServer>;
  create: (options: { baseUrl: string; apiKey: string }) => Provider;
}
const VENDORS: Record<'anthropic' | 'openai' | 'openai-compatible', Vendor> = {
  anthropic: { start: startFakeAnthropic, create: createAnthropic },
  openai: { start: startFakeOpenAiResponses, create: createOpenAi },
  'openai-compatible': { start: startFakeOpenAi, create: createOpenAiCompatible },
};
const FINAL = [
  'provider_auth',
  'provider_quota',
  'provider_model_unknown',
  'provider_refused',
  'provider_invalid_request',
] as const satisfies readonly ModelFailure['code'][];

describe.each(Object.entries(VENDORS))('over the wire, %s', (name, { start, create }) => {
  test('a rate limit of two seconds is waited for once, for two seconds', async () => {
    await using server = await start(({ number }) =>
      number === 1
        ? { error: { code: 'provider_rate_limited', retryAfter: '2' } }
        : { text: 'there you are' },
    );
    const model = create({ baseUrl: server.url, apiKey: 'k' });
    const stage = await openStage({ agents: [{ id: 'bo', model }], random: () => 0 });
    await stage.say('c', 'go', ['bo']);
    await server.arrived(1);
    await untilHolds(() => expect(stage.clock.left()).toContain(2_000));
    await stage.clock.advance(1_999);
    await turns(50);
    expect(server.requests).toHaveLength(1);
    await stage.clock.advance(1);
    await server.arrived(2);
    await stage.quiet();
    expect(server.requests).toHaveLength(2);
    expect(await kindsOf(stage)).toEqual(['turn.started', 'error', 'message', 'turn.done']);
    expect(await stage.check('c')).toEqual([]);
  });

  test.each(FINAL)('%s is requested once and ends the turn', async (code) => {
    await using server = await start(() => ({ error: { code } }));
    const model = create({ baseUrl: server.url, apiKey: 'k' });
    const stage = await openStage({ agents: [{ id: 'bo', model }] });
    await stage.say('c', 'go', ['bo']);
    await stage.quiet();
    expect(server.requests).toHaveLength(1);
    expect((await stage.events('c')).at(-1)).toMatchObject({ kind: 'turn.failed', body: { code } });
    expect(await stage.check('c')).toEqual([]);
  });

  test('a refused key ends the turn without any wait', async () => {
    await using server = await start(() => ({ error: { code: 'provider_auth' } }));
    const agent = { id: 'bo', provider: name as keyof typeof VENDORS, model: 'm', baseUrl: server.url };
    const troupe = await openTroupe(
      { agents: [{ ...agent, apiKeyEnv: 'KEY' }] },
      { env: { KEY: 'k' }, clock: createFakeClock() },
    );
    await troupe.send('c', { author: { kind: 'user', id: 'u', name: 'Uma' }, content: 'go', to: ['bo'] });
    // The clock stands still.
    await expect
      .poll(async () => (await troupe.events('c')).events.at(-1))
      .toMatchObject({ kind: 'turn.failed', body: { code: 'provider_auth' } });
    await troupe.close();
    expect(server.requests).toHaveLength(1);
  });

  test('without patience an unavailable server is tried as often as any other and then named', async () => {
    const server = await start(() => ({}));
    await server.close();
    const model = create({ baseUrl: server.url, apiKey: 'k' });
    const stage = await openStage({ agents: [{ id: 'bo', model }], limits: { patienceMs: 0 } });
    await stage.say('c', 'go', ['bo']);
    await stage.quiet();
    const errors = (await stage.events('c')).filter(({ kind }) => kind === 'error');
    expect(errors).toHaveLength(MAX_TRIES);
    expect((await stage.events('c')).at(-1)).toMatchObject({
      kind: 'turn.failed',
      body: { code: 'provider_unreachable' },
    });
  });

  test('invalid calls give the model one error each and run nothing', async () => {
    let runs = 0;
    const adds = defineTool({
      name: 'adds',
      description: 'a',
      schema: z.object({ a: z.number(), b: z.number() }),
      run: ({ a, b }) => ((runs += 1), String(a + b)),
    });
    const calls = [
      { name: 'adds', args: '{"a": 1,' },
      { name: 'adds', args: '{"a": NaN, "b": 1}' },
      { name: 'adds', args: '{"a": 1e999, "b": 1}' },
      { name: 'Adds', args: '{"a":1,"b":1}' },
      { name: 'subtracts', args: '{}' },
    ];
    await using server = await start(({ number }) => (number === 1 ? { calls } : { text: 'I see' }));
    const model = create({ baseUrl: server.url, apiKey: 'k' });
    const stage = await openStage({ tools: [adds], agents: [{ id: 'bo', model, tools: ['adds'] }] });
    await stage.say('c', 'go', ['bo']);
    await stage.quiet();
    expect(runs).toBe(0);
    const results = (await stage.events('c')).flatMap((event) =>
      event.kind === 'tool.result' ? [event.body] : [],
    );
    expect(results.map(({ outcome }) => outcome)).toEqual(calls.map(() => 'failed'));
    expect(server.requests).toHaveLength(2);
    const sent = JSON.stringify(server.requests[1]?.body);
    for (const { content } of results) expect(sent).toContain(JSON.stringify(content).slice(1, -1));
    expect(times(sent, 'no tool \\"Adds\\"')).toBe(1);
    expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
    expect(await stage.check('c')).toEqual([]);
  });
});
