import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { getRequestListener } from '@hono/node-server';
import {
  fromJsonSchema,
  type McpServer,
  ResourceTemplate,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import * as z from 'zod';
import { systemClock } from '../src/base/clock.ts';
import { createApp, serveHttp } from '../src/http/api/index.ts';
import type { McpHost } from '../packages/doors/src/mcp/call-tool.ts';
import { createServer } from '../packages/doors/src/mcp/server.ts';
import { createTroupe } from '../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../src/library/troupe.ts';

/**
 * `node scripts/check-mcp.ts [FOLDER]`: the public conformance suite of MCP, from npm, installed in FOLDER or in a temporary one.
 * What needs nothing but a server runs against that of a troupe; what needs tools, resources and prompts of the suite runs against
 * the same server with these added, in sessions.
 */
const SUITE = '@modelcontextprotocol/conformance@0.1.16';
const OF_TROUPE = [
  'server-initialize',
  'ping',
  'tools-list',
  'resources-list',
  'dns-rebinding-protection',
  'server-sse-polling',
  'server-sse-multiple-streams',
];
const WITH_FIXTURES = [
  'logging-set-level',
  'completion-complete',
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-with-logging',
  'tools-call-error',
  'tools-call-with-progress',
  'tools-call-sampling',
  'tools-call-elicitation',
  'json-schema-2020-12',
  'elicitation-sep1034-defaults',
  'elicitation-sep1330-enums',
  'resources-read-text',
  'resources-read-binary',
  'resources-templates-read',
  'resources-subscribe',
  'resources-unsubscribe',
  'prompts-list',
  'prompts-get-simple',
  'prompts-get-with-args',
  'prompts-get-embedded-resource',
  'prompts-get-with-image',
];
const SCENARIO_MS = 60_000;

async function main(given: string | undefined): Promise<number> {
  const folder = given ?? mkdtempSync(path.join(tmpdir(), 'troupe-mcp-'));
  try {
    const program = path.join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
    if (!existsSync(program)) spawnSync('npm', ['install', '--prefix', folder, SUITE], { stdio: 'inherit' });
    await using troupe = await createTroupe({
      doors: ['mcp'],
      agents: [{ id: 'ana', provider: 'scripted', model: 'test', script: { rules: [{ reply: 'Hello.' }] } }],
    });
    const own = await serveHttp(createApp(troupe, { writeToken: randomUUID() }), { port: 0 });
    const fixtures = await serveFixtures(troupe);
    const failed = [
      ...(await failures(program, `${own.url}/api/mcp`, OF_TROUPE)),
      ...(await failures(program, fixtures.url, WITH_FIXTURES)),
    ];
    await own.close();
    fixtures.close();
    const all = OF_TROUPE.length + WITH_FIXTURES.length;
    console.log(
      `${all - failed.length} of ${all} scenarios pass${failed.length > 0 ? `; not ${failed.join(', ')}` : ''}`,
    );
    return failed.length === 0 ? 0 : 1;
  } finally {
    if (given === undefined) rmSync(folder, { recursive: true, force: true });
  }
}

async function failures(program: string, url: string, scenarios: readonly string[]): Promise<string[]> {
  const failed: string[] = [];
  for (const scenario of scenarios) {
    const { code, said } = await runScenario(program, url, scenario);
    if (code !== 0) failed.push(scenario);
    console.log(`${code === 0 ? 'ok  ' : 'FAIL'} ${scenario}${code === 0 ? '' : `\n${said.slice(-1_500)}`}`);
  }
  return failed;
}

/** The servers are in this process, so it must not block. */
async function runScenario(program: string, url: string, scenario: string) {
  const child = spawn(process.execPath, [program, 'server', '--url', url, '--scenario', scenario], {
    timeout: SCENARIO_MS,
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, said };
}

/** The MCP server of a troupe with what the suite looks for, in sessions: it asks clients in the middle of a call. */
async function serveFixtures(troupe: Troupe) {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  async function begin() {
    const transport: WebStandardStreamableHTTPServerTransport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await withFixtures(createServer(hostOf(troupe))).connect(transport);
    return transport;
  }
  const listener = getRequestListener(async (request) => {
    const known = sessions.get(request.headers.get('mcp-session-id') ?? '');
    return (known ?? (await begin())).handleRequest(request);
  });
  const server = createHttp((request, response) => void listener(request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function hostOf(troupe: Troupe): McpHost {
  const refuse = () => Promise.reject(new Error('the suite asks no agent'));
  return {
    troupe,
    scopes: ['read', 'write'],
    clock: systemClock,
    version: '0',
    newConversation: () => 'c',
    keyOf: () => null,
    send: refuse,
    command: refuse,
    call: (work) => work(new AbortController().signal),
    changes: () => {
      throw new Error('the suite asks no agent');
    },
    read: (work) => work(),
    onError: (error) => console.error(error),
  };
}

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const SILENCE = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';
const text = (words: string) => ({ type: 'text' as const, text: words });
const image = { type: 'image' as const, data: PIXEL, mimeType: 'image/png' };
const embedded = (uri: string, words: string, mimeType = 'text/plain') => ({
  type: 'resource' as const,
  resource: { uri, mimeType, text: words },
});

const RESULTS = {
  test_simple_text: [text('This is a simple text response for testing.')],
  test_image_content: [image],
  test_audio_content: [{ type: 'audio' as const, data: SILENCE, mimeType: 'audio/wav' }],
  test_embedded_resource: [embedded('test://embedded-resource', 'This is an embedded resource content.')],
  test_multiple_content_types: [
    text('Multiple content types test:'),
    image,
    embedded('test://mixed-content-resource', '{"test":"data","value":123}', 'application/json'),
  ],
};

const choices = (word: string) =>
  ['First', 'Second', 'Third'].map((nth, at) => ({ const: `value${at + 1}`, title: `${nth} ${word}` }));
const options = ['option1', 'option2', 'option3'];
const FORMS = {
  test_elicitation_sep1034_defaults: {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
  test_elicitation_sep1330_enums: {
    untitledSingle: { type: 'string', enum: options },
    titledSingle: { type: 'string', oneOf: choices('Option') },
    legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
    untitledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { type: 'string', enum: options } },
    titledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { anyOf: choices('Choice') } },
  },
};

function withFixtures(mcp: McpServer): McpServer {
  const { server } = mcp;
  server.registerCapabilities({ prompts: {}, logging: {}, completions: {}, resources: { subscribe: true } });
  for (const [name, content] of Object.entries(RESULTS)) mcp.registerTool(name, {}, () => ({ content }));
  mcp.registerTool('test_error_handling', {}, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
  mcp.registerTool('test_tool_with_logging', {}, async ({ mcpReq }) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed'])
      await mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data } });
    return { content: [text('Logged.')] };
  });
  mcp.registerTool('test_tool_with_progress', {}, async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken ?? 0;
    for (const progress of [0, 50, 100])
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 100 },
      });
    return { content: [text(String(progressToken))] };
  });
  addQuestions(mcp);
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
      address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } },
    },
    properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
    additionalProperties: false,
  } as const;
  mcp.registerTool('json_schema_2020_12_tool', { inputSchema: fromJsonSchema(schema) }, () => ({
    content: [],
  }));
  addResources(mcp);
  addPrompts(mcp);
  server.setRequestHandler('logging/setLevel', () => ({}));
  server.setRequestHandler('completion/complete', () => ({
    completion: { values: [], total: 0, hasMore: false },
  }));
  return mcp;
}

/** Tools that ask the client, or its user, before they answer. */
function addQuestions(mcp: McpServer): void {
  const inputSchema = z.object({ prompt: z.string() });
  mcp.registerTool('test_sampling', { inputSchema }, async ({ prompt }, { mcpReq }) => {
    const { content } = await mcpReq.requestSampling({
      messages: [{ role: 'user', content: text(prompt) }],
      maxTokens: 100,
    });
    return { content: [text(`LLM response: ${JSON.stringify(content)}`)] };
  });
  const asked = z.object({ message: z.string() });
  mcp.registerTool('test_elicitation', { inputSchema: asked }, async ({ message }, { mcpReq }) => {
    const requestedSchema = {
      type: 'object' as const,
      properties: { response: { type: 'string' as const } },
    };
    const { action } = await mcpReq.elicitInput({ message, requestedSchema });
    return { content: [text(`User response: action=${action}`)] };
  });
  for (const [name, properties] of Object.entries(FORMS))
    mcp.registerTool(name, {}, async ({ mcpReq }) => {
      const requestedSchema = { type: 'object', properties, required: [] } as never;
      const { action, content = {} } = await mcpReq.elicitInput({
        message: 'Please choose.',
        requestedSchema,
      });
      return {
        content: [text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`)],
      };
    });
}

function addResources(mcp: McpServer): void {
  const read = (contents: object) => () => ({ contents: [contents as never] });
  for (const [name, contents] of Object.entries({
    'static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
    'static-binary': { mimeType: 'image/png', blob: PIXEL },
    'watched-resource': { mimeType: 'text/plain', text: 'Watched resource content' },
  }))
    mcp.registerResource(name, `test://${name}`, {}, read({ uri: `test://${name}`, ...contents }));
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
  mcp.registerResource('template', template, {}, ({ href }, { id }) => ({
    contents: [{ uri: href, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true }) }],
  }));
  mcp.server.setRequestHandler('resources/subscribe', () => ({}));
  mcp.server.setRequestHandler('resources/unsubscribe', () => ({}));
}

function addPrompts(mcp: McpServer): void {
  const description = 'A prompt of the suite.';
  const said = (...contents: object[]) => ({
    messages: contents.map((content) => ({ role: 'user' as const, content: content as never })),
  });
  mcp.registerPrompt('test_simple_prompt', { description }, () =>
    said(text('This is a simple prompt for testing.')),
  );
  const argsSchema = z.object({ arg1: z.string(), arg2: z.string() });
  mcp.registerPrompt('test_prompt_with_arguments', { description, argsSchema }, ({ arg1, arg2 }) =>
    said(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  const ofResource = z.object({ resourceUri: z.string() });
  mcp.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description, argsSchema: ofResource },
    ({ resourceUri }) =>
      said(embedded(resourceUri, 'Embedded resource content for testing.'), text('Please process it.')),
  );
  mcp.registerPrompt('test_prompt_with_image', { description }, () =>
    said(image, text('Please analyze the image above.')),
  );
}

process.exitCode = await main(process.argv[2]);
