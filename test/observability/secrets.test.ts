import { trace } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterEach, expect, test } from 'vitest';
import * as z from 'zod';
import { hideSecrets } from '../../src/library/runtime/secrets.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { API_KEY, keepLines, startVendor } from './stage.ts';

const PASSWORD = 'canary/of@the:database';
const TOKEN = 'canary-of-the-gateway';
const CANARY = /canary/;

afterEach(() => trace.disable());

test('secrets are in no log line, span or metric, wherever they come from', async () => {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
  const { logger, lines } = keepLines();
  // A tool that reads its own environment, and a vendor that repeats the key of the request.
  const look = defineTool({
    name: 'look',
    description: 'l',
    schema: z.object({}),
    run: () => `VENDOR_KEY=${API_KEY} and TROUPE_TOKEN=${TOKEN}`,
  });
  await using vendor = await startVendor(
    ({ number, headers }) => {
      if (number === 1) return { calls: [{ name: 'look', args: '{}' }] };
      if (number === 2)
        return {
          error: {
            code: 'provider_overloaded',
            message: `busy: ${headers['authorization']}`,
            retryAfter: '0',
          },
        };
      return { text: `your key is ${API_KEY}` };
    },
    { env: { VENDOR_KEY: API_KEY, TROUPE_TOKEN: TOKEN }, logger, tracing: { content: true } },
    { tools: [look] },
  );
  await vendor.say('x');
  expect(vendor.server.requests[0]?.headers['authorization']).toBe(`Bearer ${API_KEY}`);
  const spans = exporter
    .getFinishedSpans()
    .map(({ name, attributes, status }) => ({ name, attributes, status }));
  expect(JSON.stringify(spans)).toContain('VENDOR_KEY=[VENDOR_KEY]');
  expect(JSON.stringify(spans)).not.toMatch(CANARY);
  expect(lines.length).toBeGreaterThan(2);
  expect(JSON.stringify(lines)).not.toMatch(CANARY);
  expect(await vendor.page()).not.toMatch(CANARY);
});

test('content that the application does not store is in no span either', async () => {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
  await using vendor = await startVendor(
    ({ number }) =>
      number === 1
        ? { text: 'on behalf of canary', calls: [{ name: 'look', args: '{"at":"canary"}' }] }
        : { text: 'canary is well' },
    { tracing: { content: true } },
    { redact: (text) => text.replaceAll('canary', 'somebody') },
  );
  await vendor.say('how is canary?');
  const spans = JSON.stringify(exporter.getFinishedSpans().map(({ attributes }) => attributes));
  expect(spans).not.toMatch(CANARY);
  for (const words of ['somebody is well', 'saw somebody', 'how is somebody', 'on behalf of somebody'])
    expect(spans).toContain(words);
});

test('the password of an unreachable database is in no warning and no log line', async () => {
  const mongodb = `mongodb://troupe:${encodeURIComponent(PASSWORD)}@127.0.0.1:9/troupe?serverSelectionTimeoutMS=200`;
  const { logger, lines } = keepLines();
  const opening = createTroupe(
    { agents: [] },
    { allowEmpty: true, work: false, logger, mongodb, redis: `redis://:${TOKEN}@127.0.0.1:9` },
  );
  const error: unknown = await opening.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(String(error)).toMatch(/unavailable|reach|answer/i);
  expect(`${String(error)} ${JSON.stringify(lines)}`).not.toMatch(CANARY);
});

test.each<[string, string, string]>([
  [
    'a URL with a password',
    'at mongodb://ana:canary@db:27017/x failed',
    'at mongodb://[key]@db:27017/x failed',
  ],
  ['a URL with a password that has raw marks', `at redis://:${PASSWORD}@db`, 'at redis://[key]@db'],
  ['a password alone', `login ${PASSWORD} refused`, 'login [key] refused'],
  ['a key in a query', 'GET /v1?alt=sse&key=canary#x', 'GET /v1?alt=sse&key=[key]#x'],
  ['a header', 'authorization: Bearer canary1', 'authorization: [key]'],
  ['a header in JSON', '{"Authorization":"Bearer canary1","x":1}', '{"Authorization":"[key]","x":1}'],
  ['a header of a vendor', "{ 'x-api-key': 'canary1' }", "{ 'x-api-key': '[key]' }"],
  ['a value of the environment', `it is ${API_KEY}!`, 'it is [key]!'],
  ['what looks like a key', 'sk-canarycanarycanary', '[key]'],
])('%s is hidden, and the rest stays', (_, text, shown) => {
  const hide = hideSecrets([API_KEY, undefined, 'abc'], [`redis://:${PASSWORD}@db`, undefined]);
  expect(hide(text)).toBe(shown);
});

test('text without a secret stays unchanged', () => {
  const hide = hideSecrets([API_KEY, ''], [undefined]);
  for (const text of ['mail ana@example.org', 'http://127.0.0.1:4600/api?after=3', 'a token is a word', '']) {
    expect(hide(text)).toBe(text);
  }
});
