import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { trace } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { expect, onTestFinished } from 'vitest';
import * as z from 'zod';
import { createMetrics } from '../../src/http/metrics.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { keepLines } from '../observability/stage.ts';
import { tempDir } from '../store/temp-dir.ts';
import { attack } from './attack.ts';
import { openStage, VENDOR_KEY, withKey } from './stage.ts';

const TOKEN = 'canary-of-the-gateway';
const PASSWORD = 'canary-of-the-database';
/** A value from the tool's environment that it prints. */
const PRINTED = 'canary-of-the-tool';

function bytesOf(directory: string): string {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');
}

attack(17, 'keys appear in no log, span, metric, file, answer, error or page', async (refused) => {
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
  onTestFinished(() => trace.disable());
  const { logger, lines } = keepLines();
  const metrics = createMetrics({ version: '1' });
  const data = tempDir();
  const env = {
    KEY: VENDOR_KEY,
    TROUPE_TOKEN: TOKEN,
    DATABASE_URL: `mongodb://ana:${PASSWORD}@db/x`,
    TOOL_KEY: PRINTED,
  };
  const fail = defineTool({
    name: 'fail',
    description: 'Fails.',
    schema: z.object({}),
    run(): string {
      throw new Error(`TOOL_KEY=${PRINTED} is refused`);
    },
  });
  const stage = await openStage({
    agents: [{ id: 'bo', tools: ['fail'] }],
    tools: [fail],
    guarded: true,
    open: (input, options) =>
      createTroupe(input, { ...options, data, env, logger, metrics, tracing: { content: true } }),
    app: { metrics, token: TOKEN },
    // A vendor that repeats the request, as some do.
    answer: ({ number, last }) => {
      if (last.includes('please refuse'))
        return { error: { code: 'provider_auth', message: `invalid key: ${VENDOR_KEY}` } };
      return number === 1 ? { calls: [{ name: 'fail', args: '{}' }] } : { text: 'done' };
    },
  });
  const answers: string[] = [];
  const admin = await withKey(stage, 'default');
  const secret = admin.headers['authorization']?.slice('Bearer '.length) ?? '';
  for (const content of ['hello', 'please refuse']) {
    const body = { author: { kind: 'user', id: 'ana', name: 'Ana' }, to: ['bo'], content };
    answers.push((await admin('/api/conversations/c/events', { body })).text);
    await stage.troupe.idle();
  }
  expect(stage.vendor.requests[0]?.headers['authorization']).toBe(`Bearer ${VENDOR_KEY}`);
  const turns = ['c:bo:1', 'c:bo:2'].flatMap((turn) => [`/api/turns/${turn}`, `/api/turns/${turn}/prompt`]);
  const reads = [
    'events',
    'actors',
    'snapshot',
    'rows',
    'tasks',
    'export',
    'export?format=html',
    'agents/bo/prompt',
  ];
  const paths = [
    ...reads.map((each) => `/api/conversations/c/${each}`),
    ...turns,
    ...['agents', 'keys', 'whoami', 'inbox', 'queues', 'openapi.json', 'budgets'].map(
      (each) => `/api/${each}`,
    ),
    '/metrics',
    `/api/conversations/${encodeURIComponent(`x ${TOKEN.slice(0, 3)}`)}`,
  ];
  for (const each of paths) answers.push((await admin(each)).text);
  // Errors: for a wrong key, a wrong body, an unknown path.
  const wrong = { authorization: `Bearer ${secret.slice(0, -1)}` };
  answers.push((await stage.ask('/api/keys', { headers: wrong })).text);
  answers.push((await admin('/api/conversations/c/events', { body: '{"author":' })).text);
  answers.push((await admin('/nowhere')).text);
  const page = await stage.ask('/', { headers: { accept: 'text/html' } });
  await stage[Symbol.asyncDispose]();

  // 43 characters, which may include "_".
  const last = secret.slice(-43);
  const places: [place: string, text: string][] = [
    ['logs', JSON.stringify(lines)],
    ['warnings', stage.warnings.join('\n')],
    [
      'spans',
      JSON.stringify(
        exporter
          .getFinishedSpans()
          .map(({ name, attributes, events, status }) => [name, attributes, events, status]),
      ),
    ],
    ['answers', answers.join('\n')],
    ['the page', page.text],
    ['files', bytesOf(data)],
    ['errors', JSON.stringify(stage.errors)],
  ];
  expect(lines.length).toBeGreaterThan(2);
  expect(exporter.getFinishedSpans().length).toBeGreaterThan(2);
  expect(places.find(([place]) => place === 'files')?.[1]).toContain('please refuse');
  const canaries = { vendor: VENDOR_KEY, token: TOKEN, password: PASSWORD, key: last, tool: PRINTED };
  for (const [place, text] of places) {
    for (const [name, canary] of Object.entries(canaries))
      expect([place, name, text.includes(canary)]).toEqual([place, name, false]);
    refused(`none in ${place}`);
  }
  // The printed value is there, with its key replaced.
  expect(answers.join('\n')).toContain('TOOL_KEY=[TOOL_KEY] is refused');
});
