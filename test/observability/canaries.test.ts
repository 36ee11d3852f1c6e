import { randomBytes } from 'node:crypto';
import { trace } from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterEach, expect, test, vi } from 'vitest';
import * as z from 'zod';
import { DOORS } from '../../src/library/integrations/door.ts';
import { openDoors } from '../../src/library/runtime/doors.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { createApp } from '../../src/http/api/index.ts';
import { openApiDocument } from '../../src/http/api/index.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import { type OpenOptions, openTroupe, type TroupeOptions } from '../../src/library/runtime/create-troupe.ts';
import { startFakeAnthropic, startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { fetchTool } from '../../src/tools/builtin/fetch.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { HAS_SERVICES } from '../support/mode.ts';
import { startMcpHttpServer } from '../support/mcp-http-server.ts';
import { type RecordingServer, recordingServer } from '../net/stage.ts';
import { tempDir } from '../store/temp-dir.ts';
import { stdioStage } from '../tools/mcp-stage.ts';
import { type Canaries, createCanaries, filesIn, obedientVendor } from './canary-stage.ts';
import { watchCommands } from './canary-services.ts';
import { ANA, keepLines } from './stage.ts';

afterEach(() => {
  trace.disable();
  vi.restoreAllMocks();
});

/** Everything that a process gets and must keep to itself. */
function environment(canaries: Canaries) {
  const named = [
    'VENDOR_KEY',
    'CLAUDE_KEY',
    'SECRET',
    'WEB_MCP',
    'TROUPE_TOKEN',
    'OTHER_API_KEY',
    'CI_PASSWORD',
  ];
  const nostr = ['TROUPE_NOSTR_PASSPHRASE', 'BO_NSEC', 'BO_BUNKER', 'WEBHOOK_SECRET'];
  return {
    ...Object.fromEntries([...named, ...nostr].map((name) => [name, canaries.plant(name)])),
    DATABASE_URL: `postgres://app:${canaries.plant('DATABASE_URL')}@127.0.0.1:1/app`,
  };
}

interface Room {
  input: TroupeInput;
  options: OpenOptions;
  /** The messages of people, one after the other. */
  said: readonly string[];
  /** The server that the tool fetches and webhooks call. It redirects them, with secrets in the address. */
  hops: RecordingServer;
}

/** A second adapter, with its own errors and result format. */
const ALSO_OF_CLAUDE = /look|burst|fail provider_auth|fail raw/;

const saidWith = (redirects: string) => [
  'do look {"at":"all"}',
  'do burst {}',
  'do files__environment {}',
  'do files__refuse {}',
  'do files__die {}',
  'do web__add {"a":1,"b":2}',
  `do reach {"url":"${redirects}"}`,
  'fail provider_auth',
  'fail provider_overloaded',
  'fail provider_invalid_request',
  'fail raw',
  'plain words',
];

/**
 * A company that meets all of its secrets: tools that print or throw them, servers that die with them, vendors that
 * repeat them.
 */
async function room(canaries: Canaries, stack: AsyncDisposableStack): Promise<Room> {
  const env = environment(canaries);
  const look = defineTool({
    name: 'look',
    description: 'prints its environment',
    schema: z.object({ at: z.string() }),
    run: () => ({ text: JSON.stringify(env), more: env }),
  });
  const burst = defineTool({
    name: 'burst',
    description: 'fails with all it knows',
    schema: z.object({}),
    run: () => Promise.reject(new Error(`cannot connect as ${Object.values(env).join(' or ')}`)),
  });
  const vendor = stack.use(await startFakeOpenAi(obedientVendor));
  const claude = stack.use(await startFakeAnthropic(obedientVendor));
  const web = stack.use(await startMcpHttpServer());
  const hops = stack.use(
    await recordingServer((_request, response) => {
      response.writeHead(302, {
        location: `http://u:${canaries.plant('redirect')}@127.0.0.1/?k=${canaries.plant('query')}`,
      });
      response.end();
    }),
  );
  // Troupe's own fetch tool, allowed to reach this machine.
  const reach = { ...fetchTool({ allow: [hops.host, '127.0.0.1'] }), name: 'reach' };
  const tools = ['look', 'burst', 'files/*', 'web/*', 'reach'];
  const more = { tools, model: 'gpt-5', contextWindow: 64_000 };
  const agents = [
    { id: 'bo', provider: 'openai-compatible', baseUrl: vendor.url, apiKeyEnv: 'VENDOR_KEY', ...more },
    { id: 'cl', provider: 'anthropic', baseUrl: claude.url, apiKeyEnv: 'CLAUDE_KEY', ...more },
  ] as AgentInput[];
  const mcpServers = {
    files: { ...stdioStage().server(), env: ['SECRET'], timeoutMs: 5_000 },
    web: { url: web.url, headersEnv: { authorization: 'WEB_MCP' } },
  };
  const input = {
    agents,
    tools: [look, burst, reach],
    doors: DOORS,
    mcpServers,
    webhooks: { allow: [hops.host] },
  };
  return {
    input,
    // Long enough for the wait to be reported.
    options: { env, constants: { limits: { maxAttempts: 2, patienceMs: 1_000 } } },
    said: saidWith(`http://${hops.host}/`),
    hops,
  };
}

test('no secret is stored, sent, shown or logged, in success and in failure', async () => {
  const canaries = createCanaries();
  const exporter = new InMemorySpanExporter();
  const spanProcessors = [new SimpleSpanProcessor(exporter)];
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
  const printed = (['log', 'info', 'warn', 'error', 'debug'] as const).map((name) =>
    vi.spyOn(console, name).mockImplementation(() => {}),
  );
  const { logger, lines } = keepLines();
  const dir = tempDir();
  await using stack = new AsyncDisposableStack();
  const { input, options, said, hops } = await room(canaries, stack);
  const metrics = createMetrics({ version: '1' });
  const watching = { logger, metrics, tracing: { content: true } } satisfies TroupeOptions;
  const stores = { data: `${dir}/data`, record: `${dir}/recording.jsonl` };
  const troupe = await openTroupe(input, { ...options, ...watching, ...stores });
  const token = canaries.plant('TROUPE_TOKEN');
  const issued = await troupe.keys.create({ name: 'reader', scopes: ['read'] });
  const key = canaries.plant('API key', issued.secret.slice(`trp_${issued.key.id}_`.length));
  expect(issued.secret).toContain(key);
  const errors: unknown[] = [];
  const hook = await troupe.webhooks.create({ url: `http://${hops.host}/hook`, on: ['message'] });
  canaries.plant('webhook secret', hook.secret.replace(/^whsec_/, ''));
  await troupe.agentKeys.import('bo', canaries.plant('Nostr key', randomBytes(32).toString('hex')));
  canaries.plant('nsec', await troupe.agentKeys.export('bo', { confirmed: true }));
  await expect(troupe.agentKeys.import('cl', canaries.plant('no Nostr key'))).rejects.toMatchObject({
    message: expect.not.stringContaining(canaries.plant('no Nostr key')),
  });
  const app = createApp(troupe, {
    token,
    authenticate: (credential) => troupe.authenticate(credential),
    metrics,
    onError: (error) => errors.push(error),
  });
  const ask = async (path: string, bearer: string | null, init: RequestInit = {}) => {
    const headers = {
      'content-type': 'application/json',
      ...(bearer && { authorization: `Bearer ${bearer}` }),
    };
    const response = await app.request(path, { ...init, headers });
    const text = `${JSON.stringify([...response.headers])}\n${await response.text()}`;
    canaries.see(`${init.method ?? 'GET'} ${path}`, text);
    return { status: response.status, text };
  };

  const stream = await app.request('/api/events', {
    headers: { authorization: `Bearer ${token}` },
  });
  const letGo = readAll(stream, (text) => canaries.see('event stream', text));
  for (const agent of ['bo', 'cl'])
    for (const content of agent === 'bo' ? said : said.filter((each) => ALSO_OF_CLAUDE.test(each))) {
      const body = JSON.stringify({ author: ANA, to: [agent], content });
      expect((await ask('/api/conversations/c1/events', token, { method: 'POST', body })).status).toBe(201);
      await troupe.idle();
    }
  await expect.poll(() => hops.requests.some(({ url }) => url === '/hook')).toBe(true);
  expect((await troupe.webhooks.test(hook.webhook.id))?.ok).toBe(false);
  const { events } = await troupe.events('c1');
  const results = events.flatMap((event) => (event.kind === 'tool.result' ? [event.body.content] : []));
  // All secrets were there to be leaked.
  expect(results.join('\n')).toContain('[OTHER_API_KEY]');
  expect(results.join('\n')).toContain('with a user or a password');
  expect(results.filter((text) => text.includes('[DATABASE_URL]'))).toHaveLength(4);
  expect(events.filter(({ kind }) => kind === 'turn.failed').length).toBeGreaterThan(3);

  const turns = events.flatMap((event) =>
    'turn' in event && typeof event.turn === 'string' ? [event.turn] : [],
  );
  const paths = await pathsOf({ c: 'c1', t: turns.at(-1) ?? '', a: 'bo' });
  for (const path of [
    ...paths,
    '/api/webhooks',
    '/api/keys',
    '/api/conversations/c1/export?format=html',
    '/api/search?q=c4n4ry',
    '/',
  ]) {
    expect((await ask(path, token)).status, path).toBeLessThan(500);
    for (const bad of [
      canaries.plant('wrong token'),
      `trp_${'a'.repeat(12)}_${canaries.plant('wrong key')}`,
      null,
    ])
      expect((await ask(path, bad)).status, path).not.toBe(500);
  }
  await ask('/api/conversations/c1/events', issued.secret, { method: 'POST', body: '{}' });
  await ask('/api/conversations', issued.secret);
  for (const body of ['{', '{"content":1}', JSON.stringify({ author: ANA, to: ['nobody'], content: 'x' })])
    await ask('/api/conversations/c1/events', token, { method: 'POST', body });
  await letGo();
  canaries.see(
    'spans',
    exporter
      .getFinishedSpans()
      .map(({ name, attributes, status, events: notes }) => [name, attributes, status, notes]),
  );
  canaries.see('lines', lines);
  canaries.see('metrics', await metrics.text(troupe));
  canaries.see('console', [
    'that much:',
    ...printed.flatMap(({ mock }) => mock.calls.map((call) => call.map(String))),
  ]);
  canaries.see('errors', ['that many:', ...errors.map(String)]);
  for (const [path, bytes] of filesIn(dir)) if (bytes.length > 0) canaries.see(path.slice(dir.length), bytes);
  await troupe.close();
  for (const [path, bytes] of filesIn(dir)) if (bytes.length > 0) canaries.see(path.slice(dir.length), bytes);
  expect(canaries.leaks()).toEqual([]);
  expect(canaries.size().planted).toBeGreaterThan(15);
  expect(canaries.size().places).toBeGreaterThan(25);
});

const SKIPPED = HAS_SERVICES ? '' : ' (skipped: no MongoDB)';
test.skipIf(!HAS_SERVICES)(`no secret is in jobs, in Redis or in MongoDB${SKIPPED}`, async () => {
  const canaries = createCanaries();
  await using stack = new AsyncDisposableStack();
  const { input, options, said } = await room(canaries, stack);
  const services = stack.use(await watchCommands());
  const troupe = await openTroupe(input, { ...options, ...services.options, onWarning: () => {} });
  for (const content of said) {
    await troupe.send('c1', { author: ANA, to: ['bo'], content });
    await troupe.idle();
  }
  await troupe.close();
  canaries.see('commands to Redis', services.commands());
  canaries.see('MongoDB', await services.documents());
  expect(services.commands().length).toBeGreaterThan(50);
  expect(canaries.leaks()).toEqual([]);
});

test('a leaked secret is found, as it is and encoded', () => {
  const canaries = createCanaries();
  const secret = canaries.plant('key');
  canaries.see('a page', '<p>nothing</p>');
  expect(canaries.leaks()).toEqual([]);
  canaries.see('a line', { message: `with ${secret}` });
  canaries.see('basic', Buffer.from(`user:${secret}`).toString('base64'));
  canaries.see('bytes', Buffer.from(`\0\0${secret}`));
  expect(canaries.leaks().map((leak) => leak.split(':')[0])).toEqual([
    'key in a line',
    'key in basic',
    'key in bytes',
  ]);
});

/** Every readable address from the API's own description, so that new ones are included. */
async function pathsOf(names: Record<string, string>): Promise<string[]> {
  const { paths } = Description.parse(openApiDocument({ doors: await openDoors(DOORS) }));
  const readable = Object.entries(paths).filter(
    ([path, methods]) => 'get' in methods && path !== '/api/events',
  );
  return readable.map(([path]) =>
    path.replace(/\{(\w+)\}/g, (_, name: string) => names[name] ?? names['t'] ?? ''),
  );
}

const Description = z.object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) });

/** Reads a stream until it is released. */
function readAll(response: Response, see: (text: string) => void): () => Promise<void> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  const reading = (async () => {
    for (let read = await reader?.read(); read && !read.done; read = await reader?.read())
      see(decoder.decode(read.value as Uint8Array, { stream: true }));
  })();
  return async () => {
    await reader?.cancel();
    await reading;
  };
}
