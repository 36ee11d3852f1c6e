import { type Usage, type Embedder, TroupeError, parseExact, type ModelFailure } from './troupe.ts';
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** A fake of OpenAI's chat completions and embeddings; `url` is the base URL, including /v1. */
export async function startFakeOpenAi(handler: FakeHandler = () => ({ text: 'ok' })): Promise<FakeServer> {
  const server = await startFakeServer(
    {
      path: '/v1/chat/completions',
      frames: chatFrames,
      failure: openAiFailure,
      failureFrame: ({ body }) => sse(body),
      json: { '/v1/embeddings': embeddings },
    },
    handler,
  );
  return Object.assign(server, { url: `${server.url}/v1` });
}

/** One vector per input, computed from its words. */
function embeddings({ body }: FakeRequest) {
  const { model, input } = body as { model: string; input: string[] };
  const data = input.map((text, index) => ({ object: 'embedding', index, embedding: fakeVector(text) }));
  const tokens = input.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0);
  return { object: 'list', model, data, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

const OPENAI_STOPS = {
  end: 'stop',
  calls: 'tool_calls',
  length: 'length',
  refusal: 'content_filter',
} as const;

function chatFrames(reply: FakeReply, request: FakeRequest) {
  const { text = '', reasoning = '', calls = [], chunk, usage = FAKE_USAGE } = reply;
  const stop = reply.stop ?? (calls.length > 0 ? 'calls' : 'end');
  const envelope = {
    id: `chatcmpl-${request.number}`,
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: reply.model ?? (request.body as { model: string }).model,
  };
  const frame = (delta: unknown, finish: string | null = null) =>
    sse({ ...envelope, choices: [{ index: 0, delta, finish_reason: finish }] });
  const content = [
    ...pieces(reasoning, chunk).map((piece) => frame({ reasoning_content: piece })),
    ...pieces(text, chunk).map((piece) => frame({ content: piece })),
  ];
  for (const [index, { id = `call_${request.number}_${index}`, name, args }] of calls.entries()) {
    content.push(frame({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }));
    for (const piece of pieces(args, chunk)) {
      content.push(frame({ tool_calls: [{ index, function: { arguments: piece } }] }));
    }
  }
  const tail = [frame({}, OPENAI_STOPS[stop])];
  if (usage) tail.push(sse({ ...envelope, choices: [], usage: usageOf(usage) }));
  tail.push(sse('[DONE]'));
  return { head: [frame({ role: 'assistant', content: '' })], content, tail };
}

function usageOf(usage: Usage) {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}

const OPENAI_FAILURES: Record<
  VendorFailure,
  [status: number, type: string, code: string | null, message: string]
> = {
  provider_auth: [401, 'invalid_request_error', 'invalid_api_key', 'Incorrect API key provided.'],
  provider_quota: [429, 'insufficient_quota', 'insufficient_quota', 'You exceeded your current quota.'],
  provider_model_unknown: [404, 'invalid_request_error', 'model_not_found', 'The model `m` does not exist.'],
  provider_refused: [
    400,
    'invalid_request_error',
    'content_policy_violation',
    'Rejected by the safety system.',
  ],
  provider_invalid_request: [400, 'invalid_request_error', null, 'Invalid value for messages[0].'],
  provider_rate_limited: [429, 'requests', 'rate_limit_exceeded', 'Rate limit reached.'],
  provider_overloaded: [503, 'server_error', null, 'The engine is currently overloaded.'],
  provider_unreachable: [504, 'server_error', null, 'Gateway timeout.'],
  provider_truncated: [500, 'server_error', null, 'Truncated.'],
  provider_failed: [500, 'server_error', null, 'The server had an error.'],
  context_overflow: [
    400,
    'invalid_request_error',
    'context_length_exceeded',
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
  ],
};

/** A failure in OpenAI's format, for all of its APIs. */
function openAiFailure(error: NonNullable<FakeReply['error']>): FakeFailure {
  const [status, type, code, message] = OPENAI_FAILURES[error.code];
  return { status, body: { error: { message: error.message ?? message, type, param: null, code } } };
}

/** A fake of OpenAI's Responses API; `url` is the base URL, including /v1. */
export async function startFakeOpenAiResponses(
  handler: FakeHandler = () => ({ text: 'ok' }),
): Promise<FakeServer> {
  const server = await startFakeServer(
    {
      path: '/v1/responses',
      frames: responseFrames,
      failure: openAiFailure,
      failureFrame: ({ body }) => sse({ type: 'error', ...(body as object) }, 'error'),
    },
    handler,
  );
  return Object.assign(server, { url: `${server.url}/v1` });
}

const INCOMPLETE = { length: 'max_output_tokens', refusal: 'content_filter' } as const;

type Named = { type: string; [key: string]: unknown };

function responseFrames(reply: FakeReply, { number, body }: FakeRequest) {
  const { text = '', reasoning = '', calls = [], chunk, stop } = reply;
  const reason = stop === 'length' || stop === 'refusal' ? INCOMPLETE[stop] : null;
  const status = reason ? 'incomplete' : 'completed';
  let sequence = 0;
  const named = (data: Named) => sse({ ...data, sequence_number: sequence++ }, data.type);
  const response = {
    id: `resp_${number}`,
    object: 'response',
    created_at: 1_700_000_000,
    model: reply.model ?? (body as { model: string }).model,
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    output: [] as object[],
    usage: null,
  };
  const head = [named({ type: 'response.created', response })];
  const content: string[] = [];
  const output: object[] = [];

  /** An item with its deltas. The frame that opens it is sent with the first delta, so `after` counts only visible ones. */
  function item(opened: object, finished: object, deltas: readonly Named[]): void {
    const at = { output_index: output.length };
    const open = named({ type: 'response.output_item.added', ...at, item: opened });
    const parts = deltas.map((delta) => named({ ...delta, ...at }));
    const closed = named({ type: 'response.output_item.done', ...at, item: finished });
    content.push(open + (parts[0] ?? ''), ...parts.slice(1));
    content.push((content.pop() ?? '') + closed);
    output.push(finished);
  }

  if (reasoning !== '') {
    const base = { type: 'reasoning', id: `rs_${number}` };
    const deltas = pieces(reasoning, chunk).map((delta) => ({
      type: 'response.reasoning_summary_text.delta',
      item_id: base.id,
      summary_index: 0,
      delta,
    }));
    const summary = [{ type: 'summary_text', text: reasoning }];
    item(
      { ...base, summary: [] },
      { ...base, summary, encrypted_content: `enc-${number}`, status: 'completed' },
      deltas,
    );
  }
  if (text !== '') {
    const base = { type: 'message', id: `msg_${number}`, role: 'assistant' };
    const deltas = pieces(text, chunk).map((delta) => ({
      type: 'response.output_text.delta',
      item_id: base.id,
      content_index: 0,
      delta,
    }));
    const said = [{ type: 'output_text', text, annotations: [] }];
    item({ ...base, status: 'in_progress', content: [] }, { ...base, status, content: said }, deltas);
  }
  for (const [i, { id = `call_${number}_${i}`, name, args }] of calls.entries()) {
    const base = { type: 'function_call', id: `fc_${number}_${i}`, call_id: id, name };
    const deltas = pieces(args, chunk).map((delta) => ({
      type: 'response.function_call_arguments.delta',
      item_id: base.id,
      delta,
    }));
    item({ ...base, arguments: '', status: 'in_progress' }, { ...base, arguments: args, status }, deltas);
  }
  const ended = { ...response, status, output, incomplete_details: reason ? { reason } : null };
  return {
    head,
    content,
    tail: [named({ type: `response.${status}`, response: { ...ended, usage: responseUsage(reply) } })],
  };
}

function responseUsage({ usage = FAKE_USAGE }: FakeReply) {
  return usage === null
    ? null
    : {
        input_tokens: usage.input,
        input_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
        output_tokens: usage.output,
        output_tokens_details: { reasoning_tokens: usage.reasoning },
        total_tokens: usage.input + usage.output,
      };
}

/** A fake of Anthropic's messages API. */
export function startFakeAnthropic(handler: FakeHandler = () => ({ text: 'ok' })): Promise<FakeServer> {
  return startFakeServer(
    {
      path: '/v1/messages',
      frames: anthropicFrames,
      failure: anthropicFailure,
      failureFrame: ({ body }) => sse(body, 'error'),
    },
    handler,
  );
}

const ANTHROPIC_STOPS = {
  end: 'end_turn',
  calls: 'tool_use',
  length: 'max_tokens',
  refusal: 'refusal',
} as const;

function anthropicFrames(reply: FakeReply, request: FakeRequest) {
  const { text = '', reasoning = '', calls = [], chunk, usage: given } = reply;
  const usage = given ?? (given === null ? { ...FAKE_USAGE, input: 0, output: 0 } : FAKE_USAGE);
  const stop = reply.stop ?? (calls.length > 0 ? 'calls' : 'end');
  const named = (data: { type: string; [key: string]: unknown }) => sse(data, data.type);
  const head = [
    named({
      type: 'message_start',
      message: {
        id: `msg_${request.number}`,
        type: 'message',
        role: 'assistant',
        model: reply.model ?? (request.body as { model: string }).model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: {
          input_tokens: usage.input - usage.cacheRead - usage.cacheWrite,
          cache_read_input_tokens: usage.cacheRead,
          cache_creation_input_tokens: usage.cacheWrite,
          output_tokens: usage.output > 0 ? 1 : 0,
        },
      },
    }),
    named({ type: 'ping' }),
  ];
  const content: string[] = [];
  let index = 0;
  const block = (start: unknown, deltas: readonly unknown[]) => {
    // The frame that opens a block is sent with its first delta, so `after` counts only visible deltas.
    const open = named({ type: 'content_block_start', index, content_block: start });
    const parts = deltas.map((delta) => named({ type: 'content_block_delta', index, delta }));
    const closed = named({ type: 'content_block_stop', index });
    content.push(open + (parts[0] ?? ''), ...parts.slice(1));
    content.push((content.pop() ?? '') + closed);
    index += 1;
  };
  if (reasoning !== '') {
    const deltas = pieces(reasoning, chunk).map((thinking) => ({ type: 'thinking_delta', thinking }));
    const signature = { type: 'signature_delta', signature: `sig-${request.number}` };
    block({ type: 'thinking', thinking: '', signature: '' }, [...deltas, signature]);
  }
  if (text !== '') {
    const deltas = pieces(text, chunk).map((piece) => ({ type: 'text_delta', text: piece }));
    block({ type: 'text', text: '' }, deltas);
  }
  for (const [i, { id = `toolu_${request.number}_${i}`, name, args }] of calls.entries()) {
    const deltas = pieces(args, chunk).map((partial_json) => ({ type: 'input_json_delta', partial_json }));
    block({ type: 'tool_use', id, name, input: {} }, [
      { type: 'input_json_delta', partial_json: '' },
      ...deltas,
    ]);
  }
  const delta = { stop_reason: ANTHROPIC_STOPS[stop], stop_sequence: null };
  const output = { output_tokens: usage.output, output_tokens_details: { thinking_tokens: usage.reasoning } };
  const tail = [named({ type: 'message_delta', delta, usage: output }), named({ type: 'message_stop' })];
  return { head, content, tail };
}

const ANTHROPIC_FAILURES: Record<VendorFailure, [status: number, type: string, message: string]> = {
  provider_auth: [401, 'authentication_error', 'invalid API key'],
  provider_quota: [
    400,
    'invalid_request_error',
    'Your credit balance is too low to access the Anthropic API.',
  ],
  provider_model_unknown: [404, 'not_found_error', 'model: m'],
  provider_refused: [400, 'invalid_request_error', 'Output blocked by content filtering policy'],
  provider_invalid_request: [400, 'invalid_request_error', 'messages.0.content: Field required'],
  provider_rate_limited: [429, 'rate_limit_error', 'This request would exceed the rate limit.'],
  provider_overloaded: [529, 'overloaded_error', 'Overloaded'],
  provider_unreachable: [504, 'timeout_error', 'Gateway timeout'],
  provider_truncated: [500, 'api_error', 'Truncated'],
  provider_failed: [500, 'api_error', 'Internal server error'],
  context_overflow: [400, 'invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'],
};

function anthropicFailure(error: NonNullable<FakeReply['error']>) {
  const [status, type, message] = ANTHROPIC_FAILURES[error.code];
  const body = {
    type: 'error',
    error: { type, message: error.message ?? message },
    request_id: 'req_fake',
  };
  return { status, body };
}

const DIMENSIONS = 64;

/** A vector that depends only on the words: texts with common words are close. Its length is never zero. */
export function fakeVector(text: string): number[] {
  const vector = Array.from({ length: DIMENSIONS }, () => 0);
  for (const word of ['', ...(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])]) {
    const [place = 0, size = 0] = createHash('sha256').update(word).digest();
    const at = place % DIMENSIONS;
    vector[at] = (vector[at] ?? 0) + (word === '' ? 0.01 : 1 + size / 256);
  }
  return vector;
}

/** An embedder without a model. */
export interface FakeEmbedder extends Embedder {
  /** The texts of every call so far. */
  calls: (readonly string[])[];
}

/** An embedder without a server. `before` runs in every call and may wait or throw. */
export function createFakeEmbedder(
  before: (texts: readonly string[], signal: AbortSignal) => Promise<void> | void = () => undefined,
): FakeEmbedder {
  const calls: (readonly string[])[] = [];
  return {
    name: 'fake',
    model: 'hash',
    calls,
    async embed(texts, { signal }) {
      if (signal.aborted) throw new TroupeError('aborted', 'the embedding was aborted');
      if (texts.length === 0) return [];
      calls.push(texts);
      await before(texts, signal);
      return texts.map(fakeVector);
    },
  };
}

/** A vendor's wire format. */
export interface FakeVendor {
  /** The path that is answered. */
  path: string;
  /** The events of an answer. */
  frames(reply: FakeReply, request: FakeRequest): FakeFrames;
  /** The HTTP answer of a failure. */
  failure(error: NonNullable<FakeReply['error']>): FakeFailure;
  /** The failure as an event inside a stream. */
  failureFrame(failure: FakeFailure): string;
  /** Paths answered with one JSON document. */
  json?: Readonly<Record<string, (request: FakeRequest) => unknown>>;
}

/** A running fake of a vendor. */
export interface FakeServer extends AsyncDisposable {
  /** Its address. */
  url: string;
  /** All requests so far, as received. */
  requests: FakeRequest[];
  /** Resolves when request `number` (from 1) has arrived. */
  arrived(number?: number): Promise<FakeRequest>;
  /** Closes it. */
  close(): Promise<void>;
}

/** A vendor on 127.0.0.1 over real HTTP: tests see exactly what the SDK sends. */
export async function startFakeServer(vendor: FakeVendor, handler: FakeHandler): Promise<FakeServer> {
  const requests: FakeRequest[] = [];
  const waiting = new Map<number, PromiseWithResolvers<FakeRequest>>();
  const closing = new AbortController();
  // A client of a closed server may connect to this one, because ports are reused at once. The prefix refuses it.
  const prefix = `/${randomUUID().slice(0, 8)}`;

  // As in `serve-http.ts`: an idle connection that this server closes may meet a request of a busy process.
  const server = createServer({ keepAliveTimeout: 75_000 }, (incoming, outgoing) => {
    answer(incoming, outgoing).catch((error: unknown) => outgoing.destroy(error as Error));
  });

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const url = incoming.url ?? '';
    if (!url.startsWith(prefix)) return send(outgoing, 404, {}, 'not for this server');
    const gone = new Promise<void>((resolve) => outgoing.once('close', resolve));
    const request: FakeRequest = {
      number: requests.length + 1,
      method: incoming.method ?? '',
      path: url.slice(prefix.length),
      headers: incoming.headers as FakeRequest['headers'],
      body: parseBody(Buffer.concat(chunks).toString()),
      gone,
    };
    requests.push(request);
    waiting.get(request.number)?.resolve(request);
    await respond({ vendor, request, outgoing, signal: closing.signal }, handler);
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  async function close(): Promise<void> {
    closing.abort();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  return {
    url: `http://127.0.0.1:${port}${prefix}`,
    requests,
    arrived(number = 1) {
      const known = requests[number - 1];
      if (known) return Promise.resolve(known);
      const waiter = waiting.get(number) ?? Promise.withResolvers<FakeRequest>();
      waiting.set(number, waiter);
      return waiter.promise;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface Exchange {
  vendor: FakeVendor;
  request: FakeRequest;
  outgoing: ServerResponse;
  /** Aborted when the server closes. */
  signal: AbortSignal;
}

async function respond(exchange: Exchange, handler: FakeHandler): Promise<void> {
  const { vendor, request, outgoing } = exchange;
  const [path = ''] = request.path.split('?');
  const json = vendor.json?.[path];
  if (path !== vendor.path && !json) return send(outgoing, 404, {}, '<html>no such page</html>');
  const reply = await handler(request);
  if (reply.hang) return request.gone;
  if (reply.raw) return send(outgoing, reply.raw.status, reply.raw.headers ?? {}, reply.raw.body);
  if (reply.error && reply.error.after === undefined) return sendFailure(exchange, reply.error);
  return json ? sendJson(exchange, json(request), reply) : stream(exchange, reply);
}

function sendFailure({ vendor, outgoing }: Exchange, error: NonNullable<FakeReply['error']>): void {
  const { status, body } = vendor.failure(error);
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (error.retryAfter) headers['retry-after'] = error.retryAfter;
  send(outgoing, status, headers, JSON.stringify(body));
}

async function sendJson(
  { outgoing, signal }: Exchange,
  body: unknown,
  { delayMs = 0 }: FakeReply,
): Promise<void> {
  if (delayMs > 0) await wait(delayMs, undefined, { signal });
  send(outgoing, 200, { 'content-type': 'application/json' }, JSON.stringify(body));
}

async function stream({ vendor, request, outgoing, signal }: Exchange, reply: FakeReply): Promise<void> {
  outgoing.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  for (const frame of framesOf(vendor, request, reply)) {
    if (reply.delayMs) await wait(reply.delayMs, undefined, { signal });
    await new Promise<void>((resolve) => outgoing.write(frame, () => resolve()));
    if (outgoing.destroyed) return;
  }
  switch (reply.breaks?.how) {
    case 'hang':
      return request.gone;
    case 'cut':
      // The write callback means that the kernel has the bytes; one turn of the loop lets the client read them first.
      await new Promise((resolve) => setImmediate(resolve));
      return void outgoing.destroy();
    case 'reset':
      return void (outgoing.socket as Socket).resetAndDestroy();
    case 'end':
    case undefined:
      outgoing.end();
  }
}

/** All frames, or those before a break or an error. */
function framesOf(vendor: FakeVendor, request: FakeRequest, reply: FakeReply): string[] {
  const { head, content, tail } = vendor.frames(reply, request);
  const { breaks, error } = reply;
  const sent = [...head, ...content.slice(0, breaks?.after ?? error?.after ?? content.length)];
  if (breaks) return sent;
  return error ? [...sent, vendor.failureFrame(vendor.failure(error))] : [...sent, ...tail];
}

function send(
  outgoing: ServerResponse,
  status: number,
  headers: Record<string, string>,
  body: string | Uint8Array,
): void {
  outgoing.writeHead(status, headers);
  outgoing.end(body);
}

function parseBody(text: string): unknown {
  try {
    return parseExact(text);
  } catch {
    return text; // A test may check a body that is not JSON.
  }
}

/** Failures that a vendor's server reports. Troupe itself detects the others. */
export type VendorFailure = Exclude<
  ModelFailure['code'],
  | 'provider_session_lost'
  | 'provider_unusable'
  | 'provider_unverified'
  | 'provider_invalid_reply'
  | 'provider_redirected'
  | 'provider_reply_too_long'
>;

/** A fake vendor's answer, independent of the vendor: each fake converts it to its wire format. */
export interface FakeReply {
  /** The text. */
  text?: string;
  /** The model named in the answer. Default: the requested one. */
  model?: string;
  /** Reasoning before the text. */
  reasoning?: string;
  /** Calls of tools. */
  calls?: readonly { id?: string; name: string; args: string }[];
  /** Characters per delta, of text and of call arguments. Default 8. */
  chunk?: number;
  /** Stop reason; default `calls` if there are calls, else `end`. */
  stop?: 'end' | 'calls' | 'length' | 'refusal';
  /** Null: the answer has no usage. */
  usage?: Usage | null;
  /** Milliseconds before every chunk. */
  delayMs?: number;
  /** An error instead of an answer, or, with `after`, as an event after that many chunks of it. */
  error?: { code: VendorFailure; message?: string; retryAfter?: string; after?: number };
  /** A raw response instead of an answer. */
  raw?: { status: number; headers?: Record<string, string>; body: string | Uint8Array };
  /** Stops after that many chunks of content: completes the answer, cuts or resets the connection, or sends nothing more. */
  breaks?: { after: number; how: 'end' | 'cut' | 'reset' | 'hang' };
  /** Never answers. */
  hang?: boolean;
}

/** A request that a fake vendor received. */
export interface FakeRequest {
  /** From 1. */
  number: number;
  /** The HTTP method. */
  method: string;
  /** Path and query of the address. */
  path: string;
  /** The headers. */
  headers: Record<string, string | undefined>;
  /** The body. */
  body: unknown;
  /** Resolves when the connection is closed or the answer is complete. */
  gone: Promise<void>;
}

/** Answers a request to a fake vendor. */
export type FakeHandler = (request: FakeRequest) => FakeReply | Promise<FakeReply>;

/** The frames of an answer as sent. Breaks count only `content`. */
export interface FakeFrames {
  /** Before the content. */
  head: string[];
  /** The content, piece by piece. */
  content: string[];
  /** After the content. */
  tail: string[];
}

/** The HTTP answer for a failure. */
export interface FakeFailure {
  /** Status of the answer. */
  status: number;
  /** Its JSON. */
  body: unknown;
}

/** Usage that fake vendors report. */
export const FAKE_USAGE: Usage = { input: 12, output: 7, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** Splits text into pieces that never cut a surrogate pair. */
export function pieces(text: string, size = 8): string[] {
  const points = Array.from(text);
  const count = Math.ceil(points.length / size);
  return Array.from({ length: count }, (_, i) => points.slice(i * size, (i + 1) * size).join(''));
}

export function sse(data: unknown, event?: string): string {
  return `${event ? `event: ${event}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}
