import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Usage } from '../events/index.ts';
import type { ModelFailure } from '../providers/provider.ts';

/** A vendor's wire format. */
export interface FakeVendor {
  path: string;
  frames(reply: FakeReply, request: FakeRequest): FakeFrames;
  failure(error: NonNullable<FakeReply['error']>): FakeFailure;
  /** The failure as an event within a stream. */
  failureFrame(failure: FakeFailure): string;
  /** What is answered in one piece of JSON, by path. */
  json?: Readonly<Record<string, (request: FakeRequest) => unknown>>;
}

export interface FakeServer extends AsyncDisposable {
  url: string;
  /** Every request so far, as it was received. */
  requests: FakeRequest[];
  /** Resolves when request `number` (from 1) has arrived. */
  arrived(number?: number): Promise<FakeRequest>;
  close(): Promise<void>;
}

/** A vendor on 127.0.0.1 over real HTTP: what tests see is what the SDK really sends. */
export async function startFakeServer(vendor: FakeVendor, handler: FakeHandler): Promise<FakeServer> {
  const requests: FakeRequest[] = [];
  const waiting = new Map<number, PromiseWithResolvers<FakeRequest>>();
  const closing = new AbortController();
  // Ports are used again at once: a client of a server that has closed may knock here. It does not know this word.
  const prefix = `/${randomUUID().slice(0, 8)}`;

  const server = createServer((incoming, outgoing) => {
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
    const [path = ''] = request.path.split('?');
    const json = vendor.json?.[path];
    if (path !== vendor.path && !json) return send(outgoing, 404, {}, '<html>no such page</html>');
    const reply = await handler(request);
    if (reply.hang) return gone;
    if (reply.raw) return send(outgoing, reply.raw.status, reply.raw.headers ?? {}, reply.raw.body);
    if (reply.error && reply.error.after === undefined) {
      const { status, body } = vendor.failure(reply.error);
      const headers: Record<string, string> = { 'content-type': 'application/json' };
      if (reply.error.retryAfter) headers['retry-after'] = reply.error.retryAfter;
      return send(outgoing, status, headers, JSON.stringify(body));
    }
    if (json) return sendJson(outgoing, json(request), reply);
    await stream(outgoing, reply, request, gone);
  }

  async function sendJson(
    outgoing: ServerResponse,
    body: unknown,
    { delayMs = 0 }: FakeReply,
  ): Promise<void> {
    if (delayMs > 0) await wait(delayMs, undefined, { signal: closing.signal });
    send(outgoing, 200, { 'content-type': 'application/json' }, JSON.stringify(body));
  }

  async function stream(
    outgoing: ServerResponse,
    reply: FakeReply,
    request: FakeRequest,
    gone: Promise<void>,
  ): Promise<void> {
    const { head, content, tail } = vendor.frames(reply, request);
    const { breaks, error, delayMs = 0 } = reply;
    const said = content.slice(0, breaks?.after ?? error?.after ?? content.length);
    outgoing.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    const frames = [...head, ...said];
    if (!breaks && error) frames.push(vendor.failureFrame(vendor.failure(error)));
    if (!breaks && !error) frames.push(...tail);
    for (const frame of frames) {
      if (delayMs > 0) await wait(delayMs, undefined, { signal: closing.signal });
      await new Promise<void>((resolve) => outgoing.write(frame, () => resolve()));
      if (outgoing.destroyed) return;
    }
    if (breaks?.how === 'hang') return gone;
    // A write callback says that the kernel has the bytes; a turn of the loop lets the other side read them first.
    if (breaks?.how === 'cut') await new Promise((resolve) => setImmediate(resolve));
    if (breaks?.how === 'cut') return void outgoing.destroy();
    if (breaks?.how === 'reset') return void (outgoing.socket as Socket).resetAndDestroy();
    outgoing.end();
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
    return JSON.parse(text);
  } catch {
    return text; // A test may want to see what was sent instead of JSON.
  }
}

/** What a vendor's server may answer with; the others are found out on our side. */
export type VendorFailure = Exclude<
  ModelFailure['code'],
  | 'provider_session_lost'
  | 'provider_unusable'
  | 'provider_invalid_reply'
  | 'provider_redirected'
  | 'provider_reply_too_long'
>;

/** What a fake vendor answers, in no vendor's words: each fake turns it into the wire format of its own. */
export interface FakeReply {
  text?: string;
  /** What the answer says of the model that gave it. Default the one that was asked for. */
  model?: string;
  reasoning?: string;
  calls?: readonly { id?: string; name: string; args: string }[];
  /** Characters per delta, of text and of call arguments. Default 8. */
  chunk?: number;
  /** Why the model stopped; by default `calls` where there are calls, else `end`. */
  stop?: 'end' | 'calls' | 'length' | 'refusal';
  /** Null sends none. */
  usage?: Usage | null;
  /** Milliseconds before every chunk. */
  delayMs?: number;
  /** An error instead of an answer, or, with `after`, as an event after so many chunks of it. */
  error?: { code: VendorFailure; message?: string; retryAfter?: string; after?: number };
  /** Any response at all, instead of an answer. */
  raw?: { status: number; headers?: Record<string, string>; body: string | Uint8Array };
  /** Stops after so many chunks of content: `end` politely, `cut` the connection, `reset` it, or `hang`. */
  breaks?: { after: number; how: 'end' | 'cut' | 'reset' | 'hang' };
  /** Never answers. */
  hang?: boolean;
}

export interface FakeRequest {
  /** From 1. */
  number: number;
  method: string;
  path: string;
  headers: Record<string, string | undefined>;
  body: unknown;
  /** Resolves when the client has closed the connection or has been answered. */
  gone: Promise<void>;
}

export type FakeHandler = (request: FakeRequest) => FakeReply | Promise<FakeReply>;

/** The pieces of an answer, each as it goes over the wire. Breaks count `content` only. */
export interface FakeFrames {
  head: string[];
  content: string[];
  tail: string[];
}

export interface FakeFailure {
  status: number;
  body: unknown;
}

export const FAKE_USAGE: Usage = { input: 12, output: 7, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** The text in pieces that never cut a surrogate pair. */
export function pieces(text: string, size = 8): string[] {
  const points = Array.from(text);
  const count = Math.ceil(points.length / size);
  return Array.from({ length: count }, (_, i) => points.slice(i * size, (i + 1) * size).join(''));
}

export function sse(data: unknown, event?: string): string {
  return `${event ? `event: ${event}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}
