import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { parseExact, type Usage, type ModelFailure } from './troupe.ts';

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
  /** The words. */
  text?: string;
  /** The model named in the answer. Default: the requested one. */
  model?: string;
  /** Reasoning before the words. */
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
  /** Stops after that many chunks of content: `end` regularly, `cut` the connection, `reset` it, or `hang`. */
  breaks?: { after: number; how: 'end' | 'cut' | 'reset' | 'hang' };
  /** Never answers. */
  hang?: boolean;
}

/** A request that a fake vendor got. */
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

/** An HTTP answer that tells of a failure. */
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
