import { DOORS } from '../../src/library/integrations/door.ts';
import { openDoors } from '../../src/library/runtime/doors.ts';
import { below, pick, type Random } from '../../sim/random.ts';
import { Command } from '../../src/events/index.ts';
import { openApiDocument } from '../../src/http/api/index.ts';
import { NewEventBody } from '../../src/http/schemas.ts';
import { mutate, mutateText } from '../mutate.ts';
import { nastyText } from '../nasty.ts';
import { type JsonSchema, sampleOf } from '../sample-of.ts';
import { shapesOf } from './events.ts';
import { FORMATS, transcripts } from './transcripts.ts';

export interface RequestInput {
  method: string;
  path: string;
  headers: [string, string][];
  body: string | null;
  bytes: 'utf8' | 'latin1';
}

interface Operation {
  method: string;
  path: string;
  query: { name: string; schema: JsonSchema }[];
}

const doors = await openDoors(DOORS);
const OPERATIONS = operations();
const MESSAGES = shapesOf(NewEventBody);
const COMMANDS = shapesOf(Command);
/** What chats of the AI SDK post. */
const TEXT = { type: 'text', text: 'Hello' };
const FILE = { type: 'file', mediaType: 'text/plain', filename: 'a.txt', url: 'data:text/plain;base64,YQ==' };
const CALL = { type: 'dynamic-tool', toolName: 'x', toolCallId: 'c1', state: 'approval-responded' };
const ANSWER = { type: 'data-answer', data: { question: 'q-1', content: 'yes' } };
const CHATS = [
  {
    id: 'c1',
    trigger: 'submit-message',
    messages: [{ id: 'm1', role: 'user', parts: [TEXT, FILE] }],
    to: ['echo'],
  },
  { messages: [{ id: 'm2', role: 'user', parts: [TEXT, ANSWER] }] },
  {
    messageId: 'answer-1',
    messages: [
      {
        id: 'answer-1',
        role: 'assistant',
        parts: [{ ...CALL, approval: { id: 'c1/a-1', approved: true, reason: 'fine' } }],
      },
    ],
  },
];
/** What SDKs of OpenAI post: histories, calls with their results, files, tools to choose from. */
const FUNCTION = { name: 'look', description: 'Looks.', parameters: { type: 'object', $defs: { A: {} } } };
const MADE = { id: 'l1', type: 'function', function: { name: 'look', arguments: '{"a":1}' } };
const COMPLETIONS = [
  {
    model: 'echo',
    stream: true,
    messages: [
      { role: 'system', content: 'Be short.' },
      {
        role: 'user',
        content: [TEXT, { type: 'image_url', image_url: { url: 'data:image/png;base64,YQ==' } }],
      },
      { role: 'assistant', content: null, tool_calls: [MADE] },
      { role: 'tool', tool_call_id: 'l1', content: 'seen' },
      { role: 'assistant', content: 'Hello' },
      { role: 'user', content: [TEXT, { type: 'file', file: { filename: 'a.txt', file_data: 'YQ==' } }] },
    ],
  },
  {
    model: 'troupe',
    messages: [{ role: 'user', content: 'Hello' }],
    tools: [{ type: 'function', function: FUNCTION }],
    tool_choice: 'auto',
    response_format: { type: 'text' },
  },
];
const RESPONSES = [
  {
    model: 'echo',
    instructions: 'Be short.',
    input: [
      { role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
      { type: 'reasoning', id: 'rs_1', summary: [] },
      {
        type: 'message',
        id: 'msg_resp_c1_1',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Hi' }],
      },
      { type: 'function_call', id: 'fc1_resp_c1_1', call_id: 'l1', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'l1', output: [{ type: 'input_text', text: 'seen' }] },
      { type: 'input_file', role: 'user', content: [{ type: 'input_file', file_data: 'YQ==' }] },
    ],
    tools: [{ type: 'function', ...FUNCTION }],
    text: { format: { type: 'text' } },
    metadata: { a: 'b' },
  },
  { model: 'echo', input: 'Hello', previous_response_id: 'resp_c1_1', store: false, stream: true },
  {
    model: 'echo',
    input: [
      { type: 'item_reference', id: 'msg_resp_c1_1' },
      { role: 'user', content: 'x' },
    ],
  },
];
const METHODS = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS', 'PROPFIND', 'get', '\0'];
const NAMES = [
  'c1',
  'c1',
  'c2',
  'echo',
  'other',
  'c1:echo:1',
  'c1:echo:2',
  'c1:nobody:1',
  'resp_c1_1',
  'none',
  'c'.repeat(128),
  'c'.repeat(4_000),
];
const NONSENSE = [
  '/',
  '//',
  '/api',
  '/api/',
  '/api/../api/agents',
  '/api/%2e%2e/%2e%2e/etc/passwd',
  '/..%2f..%2fpackage.json',
  '/assets/..%5c..%5cpackage.json',
  '/assets/%00.js',
  '/api/conversations//events',
  '/api/conversations/%ff',
  '/api/conversations/%',
  '/api/conversations/%E0%A4%A',
  '/api/conversations/c1/agents/%2F/prompt',
  '/API/agents',
  '/inspector',
  '/index.html',
  '/favicon.ico',
  '/metrics',
  '/readyz',
  '/healthz',
];
const HEADERS: readonly [string, string][] = [
  ['accept', 'text/html'],
  ['accept', '*/*;q='],
  ['accept-encoding', 'gzip, br, zstd, nonsense;q=9'],
  ['authorization', 'Bearer x'],
  ['authorization', 'Basic ='],
  ['authorization', 'Bearer trp_aaaaaaaaaaaa_x'],
  ['content-encoding', 'gzip'],
  ['content-type', 'text/plain'],
  ['content-type', 'application/json; charset=utf-16'],
  ['content-type', 'application/ld+json'],
  ['content-type', 'multipart/form-data; boundary='],
  ['content-length', '-1'],
  ['content-length', '99999999999'],
  ['cookie', 'a=b; __proto__=1'],
  ['host', 'evil.example'],
  ['host', '[::1'],
  ['host', '127.0.0.1:99999'],
  ['if-none-match', '"x", W/"y"'],
  ['last-event-id', '-1'],
  ['last-event-id', '9e99'],
  ['last-event-id', 'c1:1'],
  ['origin', 'null'],
  ['origin', 'http://127.0.0.1'],
  ['origin', 'http://['],
  ['range', 'bytes=0-1,5-'],
  ['sec-fetch-site', 'cross-site'],
  ['traceparent', '00-00000000000000000000000000000000-0000000000000000-zz'],
  ['transfer-encoding', 'chunked'],
  ['x-forwarded-for', '127.0.0.1'],
  ['x-forwarded-host', 'evil.example'],
  ['x-forwarded-prefix', '/a/../b'],
  ['x-troupe-token', 'x'],
  ['x-http-method-override', 'DELETE'],
  ['x-long', 'x'.repeat(60_000)],
];
const LONGEST_BODY = 100_000;

export function makeRequest(random: Random): RequestInput {
  const operation = pick(random, OPERATIONS);
  const isNonsense = random() < 0.1;
  const path = isNonsense ? pick(random, NONSENSE) : pathOf(random, operation.path);
  const method = random() < 0.9 ? operation.method : pick(random, METHODS);
  const query = queryOf(random, operation);
  const isBodied = method !== 'GET' && method !== 'HEAD';
  return {
    method,
    path: (random() < 0.03 ? mutateText(random, path) : path) + query,
    headers: headersOf(random, isBodied),
    body: isBodied ? bodyOf(random, path) : null,
    bytes: random() < 0.95 ? 'utf8' : 'latin1',
  };
}

function pathOf(random: Random, pattern: string): string {
  return pattern.replace(/\{(\w+)\}/g, (_, name: string) => {
    if (random() < 0.6)
      return name === 'agent' || name === 'a'
        ? pick(random, ['echo', 'other', 'nobody'])
        : pick(random, NAMES);
    const text = nastyText(random).slice(0, 2_000);
    return random() < 0.8 ? encodeURIComponent(text.toWellFormed()) : text.toWellFormed();
  });
}

function queryOf(random: Random, { query }: Operation): string {
  const parts: string[] = [];
  for (const { name, schema } of query) {
    if (random() < 0.5) continue;
    const value = random() < 0.6 ? String(sampleOf(random, schema)) : nastyText(random).slice(0, 1_000);
    parts.push(`${name}=${random() < 0.9 ? encodeURIComponent(value.toWellFormed()) : value.toWellFormed()}`);
  }
  if (random() < 0.05) parts.push(`${encodeURIComponent(nastyText(random).slice(0, 200).toWellFormed())}=1`);
  if (random() < 0.05) parts.push(...parts);
  return parts.length > 0 ? `?${parts.join('&')}` : '';
}

function headersOf(random: Random, isBodied: boolean): [string, string][] {
  const headers: [string, string][] =
    isBodied && random() < 0.95 ? [['content-type', 'application/json']] : [];
  if (random() < 0.25) headers.push(pick(random, HEADERS));
  if (random() < 0.02) headers.push(['x-many', nastyText(random).slice(0, 500)]);
  return headers;
}

function bodyOf(random: Random, path: string): string {
  const isImport = path.startsWith('/api/import');
  if (isImport) {
    const format = pick(random, FORMATS);
    const lines = transcripts(format).map((value) =>
      JSON.stringify(random() < 0.4 ? mutate(random, value) : value),
    );
    return lines.join('\n').slice(0, LONGEST_BODY);
  }
  const shapes = path.endsWith('/commands') ? COMMANDS : MESSAGES;
  const posted = [
    ['/chat', CHATS],
    ['/completions', COMPLETIONS],
    ['/responses', RESPONSES],
  ].find(([end]) => path.endsWith(end as string))?.[1];
  const sample = posted
    ? pick(random, posted as object[])
    : aimed(random, sampleOf(random, pick(random, shapes)));
  const text = JSON.stringify(random() < 0.35 ? sample : mutate(random, sample)) ?? '';
  if (random() < 0.02) return text.replace(/(?<=[:[,])"[^"]*"/, () => manyValues(random));
  if (random() < 0.9) return text.slice(0, LONGEST_BODY);
  const roll = random();
  if (roll < 0.5) return mutateText(random, text).slice(0, LONGEST_BODY);
  if (roll < 0.75) return '['.repeat(pick(random, [64, 65, 20_000])) + text;
  return text.replace(/:\d+|:"[^"]*"/, ':1e999');
}

/** Values that are many for their bytes. */
function manyValues(random: Random): string {
  const value = pick(random, ['[]', '{}', '1', 'null', '""', '[[],{}]', '{"a":[]}', '"\\""', ' ']);
  const times = Math.floor(pick(random, [1_000, 100_000, 1_000_000]) / (value.length + 1));
  return value === ' ' ? `[${value.repeat(times)}]` : `[${`${value},`.repeat(times)}${value}]`;
}

/** Replaces ids of conversations, agents and turns, mostly with existing ones. */
function aimed(random: Random, sample: unknown): unknown {
  if (typeof sample !== 'object' || sample === null) return sample;
  const entries = Object.entries(sample).map(([key, value]): [string, unknown] => {
    if (random() < 0.2) return [key, value];
    if (key === 'conversation') return [key, pick(random, ['c1', 'c2', 'c3'])];
    if (key === 'agent') return [key, pick(random, ['echo', 'other'])];
    if (key === 'to') return [key, pick(random, [['echo'], ['echo', 'other'], []])];
    if (key === 'turn') return [key, `c1:echo:${1 + below(random, 3)}`];
    if (key === 'id') return [key, `e${below(random, 1_000_000)}`];
    return [key, value];
  });
  return Object.fromEntries(entries);
}

function operations(): Operation[] {
  const { paths } = openApiDocument({ doors }) as {
    paths: Record<
      string,
      Record<string, { parameters?: { name: string; in: string; schema: JsonSchema }[] }>
    >;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [] }]) => ({
      method: method.toUpperCase(),
      path,
      query: parameters.filter((each) => each.in === 'query'),
    })),
  );
}
