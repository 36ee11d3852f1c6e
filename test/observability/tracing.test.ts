import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, context, type ContextManager, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, expect, test } from 'vitest';
import * as z from 'zod';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { openTracer } from '../../src/library/runtime/operators.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { startVendor } from './stage.ts';

const exporter = new InMemorySpanExporter();

beforeEach(() => {
  exporter.reset();
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
});
afterEach(() => {
  trace.disable();
  context.disable();
});

const WITH_TOOL = ({ number }: { number: number }) =>
  number === 1
    ? { calls: [{ name: 'look', args: '{"at":"sea"}' }], model: 'gpt-5-2026-11-01' }
    : { text: 'the sea is calm' };

function byName(spans: readonly ReadableSpan[], name: string): ReadableSpan {
  const found = spans.filter((span) => span.name === name);
  if (found.length !== 1 || !found[0]) throw new Error(`${found.length} spans are called ${name}`);
  return found[0];
}

test('a turn is one trace: the agent with its prompts, model calls, tool calls and commit', async () => {
  await using vendor = await startVendor(WITH_TOOL, { tracing: true });
  const events = await vendor.say('how is the sea?');
  const spans = exporter.getFinishedSpans();
  const root = byName(spans, 'invoke_agent Bo');
  expect(root.parentSpanContext).toBeUndefined();
  const children = spans.filter((span) => span !== root);
  expect(children.map(({ name }) => name).toSorted()).toEqual(
    ['build_prompt', 'chat gpt-5', 'execute_tool look', 'build_prompt', 'chat gpt-5', 'commit'].toSorted(),
  );
  for (const child of children) {
    expect(child.parentSpanContext?.spanId).toBe(root.spanContext().spanId);
    expect(child.spanContext().traceId).toBe(root.spanContext().traceId);
  }
  const started = events.find(({ kind }) => kind === 'turn.started');
  const asked = events.find(({ kind }) => kind === 'message');
  const result = events.find((event) => event.kind === 'tool.result');
  expect(root.attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.provider.name': 'openai-compatible',
    'gen_ai.request.model': 'gpt-5',
    'gen_ai.agent.id': 'bo',
    'gen_ai.agent.name': 'Bo',
    'gen_ai.conversation.id': 'c1',
    'gen_ai.usage.input_tokens': 24,
    'gen_ai.usage.output_tokens': 14,
    'troupe.turn': started?.turn,
    'troupe.conversation': 'c1',
    'troupe.event.seq': asked?.seq,
    'troupe.outcome': 'done',
  });
  const chats = spans.filter(({ name }) => name.startsWith('chat'));
  expect(chats.map(({ attributes }) => attributes['gen_ai.response.finish_reasons'])).toEqual([
    ['tool_call'],
    ['stop'],
  ]);
  expect(chats[0]?.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.response.model': 'gpt-5-2026-11-01',
    'gen_ai.response.id': 'chatcmpl-1',
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(vendor.server.url).port),
    'gen_ai.usage.input_tokens': 12,
    'troupe.step': 1,
    'troupe.turn': started?.turn,
  });
  const call = result?.kind === 'tool.result' ? result.body.call : 'no call';
  expect(byName(spans, 'execute_tool look').attributes).toMatchObject({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'look',
    'gen_ai.tool.call.id': call,
  });
});

test('spans have the code of a failure: of the repeated call and of the failed turn', async () => {
  await using vendor = await startVendor(
    ({ number }) => ({
      error: { code: number === 1 ? 'provider_overloaded' : 'provider_auth', retryAfter: '0' },
    }),
    { tracing: true },
  );
  await vendor.say('x');
  const spans = exporter.getFinishedSpans();
  const codes = spans
    .filter(({ name }) => name === 'chat gpt-5')
    .map(({ attributes }) => attributes['error.type']);
  expect(codes).toEqual(['provider_overloaded', 'provider_auth']);
  byName(spans, 'wait_before_retry');
  const root = byName(spans, 'invoke_agent Bo');
  expect([root.attributes['error.type'], root.status.code]).toEqual(['provider_auth', 2]);
});

test('messages are in no span, unless requested', async () => {
  const said = async (tracing: true | { content: boolean }) => {
    exporter.reset();
    await using vendor = await startVendor(WITH_TOOL, { tracing });
    await vendor.say('how is the sea?');
    return exporter.getFinishedSpans().map(({ name, attributes }) => ({ name, attributes }));
  };
  for (const silent of [true, { content: false }] as const) {
    const text = JSON.stringify(await said(silent));
    for (const words of ['how is the sea', 'the sea is calm', 'saw sea']) expect(text).not.toContain(words);
  }
  const spans = await said({ content: true });
  const last = spans.findLast(({ name }) => name === 'chat gpt-5')?.attributes;
  const input = JSON.parse(String(last?.['gen_ai.input.messages'])) as { role: string; parts: unknown[] }[];
  expect(JSON.stringify(input)).toContain('how is the sea?');
  expect(input.at(-1)).toMatchObject({
    role: 'tool',
    parts: [{ type: 'tool_call_response', result: 'saw sea' }],
  });
  expect(JSON.parse(String(last?.['gen_ai.output.messages']))).toEqual([
    { role: 'assistant', parts: [{ type: 'text', content: 'the sea is calm' }], finish_reason: 'stop' },
  ]);
});

test('spans of instrumented libraries are children of the call or tool', async () => {
  context.setGlobalContextManager(newContexts());
  await using vendor = await startVendor(
    ({ number }) => {
      if (number === 1) return { calls: [{ name: 'look', args: '{"at":"sea"}' }] };
      return { text: 'ok' };
    },
    { tracing: true },
    { tools: [tracedTool()] },
  );
  await vendor.say('x');
  const spans = exporter.getFinishedSpans();
  const inner = byName(spans, 'inside the tool');
  expect(inner.parentSpanContext?.spanId).toBe(byName(spans, 'execute_tool look').spanContext().spanId);
});

test('without tracing there are no spans; without the package the error names what to install', async () => {
  await using vendor = await startVendor(WITH_TOOL);
  await vendor.say('x');
  expect(exporter.getFinishedSpans()).toEqual([]);
  const missing = () => Promise.reject(new Error("Cannot find package '@opentelemetry/api'"));
  await expect(openTracer({}, (text) => text, missing)).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('npm i @opentelemetry/api'),
  });
});

test('without an SDK turns run as usual', async () => {
  trace.disable();
  await using vendor = await startVendor(WITH_TOOL, { tracing: true });
  const events = await vendor.say('x');
  expect(events.at(-1)?.kind).toBe('turn.done');
});

test('a troupe without turns can be traced, too', async () => {
  await using troupe = await createTroupe({ agents: [] }, { allowEmpty: true, work: false, tracing: true });
  expect(await troupe.conversations()).toEqual([]);
});

/** As the SDK for Node registers one. */
function newContexts(): ContextManager {
  const storage = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (at, work, self, ...args) => storage.run(at, () => work.apply(self, args)),
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  return manager;
}

function tracedTool() {
  return defineTool({
    name: 'look',
    description: 'l',
    schema: z.object({ at: z.string() }),
    run: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      trace.getTracer('a library').startSpan('inside the tool').end();
      return 'x';
    },
  });
}
