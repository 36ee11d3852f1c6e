import { EventSourceParserStream } from 'eventsource-parser/stream';
import type * as z from 'zod';
import { ERROR_CODES, type ErrorCode, TroupeError } from '../../base/errors.ts';
import type { Event, LiveNote } from '../../events/index.ts';
import { fetchWithinOrigin } from '../../base/net/redirects.ts';
import type { ParamName } from '../route.ts';
import type { Routes } from '../routes/index.ts';

export { TroupeError } from '../../base/errors.ts';
export type { ErrorCode, ErrorPolicy } from '../../base/errors.ts';
export type { Attachment, Author, Event } from '../../events/index.ts';

/** Options of `createClient`. */
export interface ApiClientOptions {
  /** URL at which the API is mounted, such as `http://127.0.0.1:4600`. */
  url: string;
  /** An API key, a user's token, or the server's token. */
  token?: string | undefined;
  /** Error message for a credential that the server does not accept. Default: the server's own. */
  unauthorized?: string | undefined;
}

/**
 * A client of the HTTP API, typed by the declarations of its routes. Methods throw `TroupeError`: `store_unavailable`
 * if no server answers, `command_refused` with `data.refused` for codes that only HTTP has, such as `scope_missing`.
 *
 *     const api = createClient({ url: 'http://127.0.0.1:4600' });
 *     const { events } = await api.request('GET /api/conversations/{conversation}/events', { params: { conversation: 'hello' } });
 */
export interface ApiClient {
  /** Resolves to the JSON answer. */
  request<K extends RouteName>(route: K, ...input: Args<K>): Promise<Answer<K>>;
  /** Collects all parts of a list, by `skip` and `next`. */
  whole<K extends RouteName>(
    route: K,
    list: Exclude<keyof Answer<K>, 'next'> & string,
    ...input: Args<K>
  ): Promise<Omit<Answer<K>, 'next'>>;
  /** Resolves to the response, for answers that are not JSON. */
  open<K extends RouteName>(route: K, ...input: Args<K>): Promise<Response>;
  /** Resolves once the server has accepted the stream. It ends when `signal` aborts. */
  events(query: Query<'GET /api/events'>, signal: AbortSignal): Promise<AsyncGenerator<StreamFrame, void>>;
}

/** A frame of the event stream. A piece of text with `index` 0 begins a text, or begins it again. */
export type StreamFrame =
  | { type: 'event'; event: Event }
  | RemoteNote
  | { type: 'gap' }
  /** The log was replaced by another one, whose events follow from the first on. */
  | { type: 'reset'; conversation: string };
/** A note without its tenant, which is that of the credential. */
export type RemoteNote = LiveNote extends infer N ? (N extends LiveNote ? Omit<N, 'tenant'> : never) : never;

/** Name of a route of the HTTP API. */
type RouteName = keyof Routes;
type Schema<K extends RouteName, Part extends 'query' | 'body' | 'answer'> = NonNullable<Routes[K][Part]>;
/** What a route answers. */
export type Answer<K extends RouteName> = z.output<Schema<K, 'answer'>>;
/** Query parameters, as text or as the values that the server parses. */
type Query<K extends RouteName> = Queried<Schema<K, 'query'>>;
type Queried<Q extends z.ZodType> = {
  [N in keyof z.input<Q>]: z.input<Q>[N] | z.output<Q>[N & keyof z.output<Q>] | Absent<z.input<Q>, N>;
};
type Absent<T, N extends keyof T> = Record<never, never> extends Pick<T, N> ? undefined : never;
/** What a route takes. */
export type Input<K extends RouteName> = Params<ParamName<Routes[K]['path']>> &
  Optional<'query', Query<K>> &
  Body<z.input<Schema<K, 'body'>>> & {
    /** The body of a route that accepts a file. */
    file?: RequestInit['body'];
    signal?: AbortSignal;
  };
type Params<N extends string> = [N] extends [never] ? unknown : { params: Record<N, string> };
type Optional<Name extends string, T> =
  Record<never, never> extends T ? { [N in Name]?: T } : { [N in Name]: T };
type Body<B> = [B] extends [undefined] ? unknown : { body: B };
type Args<K extends RouteName> =
  Record<never, never> extends Input<K> ? [input?: Input<K>] : [input: Input<K>];

interface AnyInput {
  params?: Record<string, string>;
  query?: Record<string, string | number | boolean | readonly string[] | undefined>;
  body?: unknown;
  file?: RequestInit['body'];
  signal?: AbortSignal;
}

/** A client of the HTTP API. */
export function createClient({ url, token, unauthorized }: ApiClientOptions): ApiClient {
  const root = url.replace(/(?<!\/)\/+$/, '');

  async function send(route: string, { params = {}, query = {}, ...rest }: AnyInput = {}): Promise<Response> {
    const [method = '', path = ''] = route.split(' ');
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
    const init = initOf(method, rest);
    if (token !== undefined) init.headers.set('authorization', `Bearer ${token}`);
    const response = await fetchWithinOrigin(`${root}${filled}${queryText(query)}`, init).catch(
      (cause: unknown) => {
        if (rest.signal?.aborted || cause instanceof TroupeError) throw cause;
        throw unreachable(root, cause);
      },
    );
    if (response.ok) return response;
    throw errorOf(response, await response.text(), unauthorized);
  }

  async function request(route: string, input?: AnyInput): Promise<unknown> {
    return await (await send(route, input)).json();
  }

  async function whole(route: string, list: string, input: AnyInput = {}): Promise<unknown> {
    const items: unknown[] = [];
    let first: object | undefined;
    let skip: number | undefined;
    for (;;) {
      const query = { ...input.query, skip };
      const { next, ...part } = (await request(route, { ...input, query })) as Record<string, unknown>;
      first ??= part;
      items.push(...(part[list] as unknown[]));
      if (typeof next !== 'number') return { ...first, [list]: items };
      skip = next;
    }
  }

  async function events(
    query: Query<'GET /api/events'>,
    signal: AbortSignal,
  ): Promise<AsyncGenerator<StreamFrame, void>> {
    const response = await send('GET /api/events', { query: { ...query }, signal });
    return framesOf(response, root, signal);
  }

  return { request, whole, open: send, events } as ApiClient;
}

function initOf(method: string, { body, file, signal }: AnyInput): RequestInit & { headers: Headers } {
  const headers = new Headers();
  if (file !== undefined) headers.set('content-type', 'application/octet-stream');
  else if (body !== undefined) headers.set('content-type', 'application/json');
  const content = file ?? (body === undefined ? null : JSON.stringify(body));
  // `fetch` requires `duplex` if the body is a stream.
  const init = { method, headers, body: content, duplex: 'half' as const, ...(signal && { signal }) };
  return init;
}

/** The query string with its question mark; empty if there is none. Absent values are omitted. */
function queryText(fields: NonNullable<AnyInput['query']>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) query.set(name, String(value));
  }
  return query.size === 0 ? '' : `?${query}`;
}

async function* framesOf(
  response: Response,
  url: string,
  signal: AbortSignal,
): AsyncGenerator<StreamFrame, void> {
  const frames = (response.body ?? new ReadableStream<Uint8Array<ArrayBuffer>>())
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  try {
    for await (const { event, data } of frames) {
      const value: unknown = JSON.parse(data);
      if (event === 'event') yield { type: 'event', event: value as Event };
      if (event === 'stream') yield { type: 'text', ...(value as object) } as RemoteNote;
      if (event === 'activity') yield activityIn(value as { kind: string });
      if (event === 'state') yield { type: 'state', ...(value as object) } as RemoteNote;
      if (event === 'gap') yield { type: 'gap' };
      if (event === 'reset')
        yield { type: 'reset', conversation: (value as { conversation: string }).conversation };
    }
  } catch (cause) {
    if (!signal.aborted) throw unreachable(url, cause);
  }
  if (!signal.aborted) throw unreachable(url, 'the event stream ended');
}

function activityIn({ kind: type, ...note }: { kind: string }): RemoteNote {
  return { type, ...note } as RemoteNote;
}

function unreachable(url: string, cause: unknown): TroupeError {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const reason = inner instanceof Error ? inner.message || inner.name : String(inner);
  const message = `no troupe answers at ${url} (${reason}); is it running?`;
  return new TroupeError('store_unavailable', message, { url }, { cause });
}

interface ErrorBody {
  code: string;
  message: string;
  data?: Record<string, unknown>;
}

function errorOf({ url, status }: Response, text: string, unauthorized: string | undefined): TroupeError {
  const error = parseError(text);
  if (error === null) {
    return new TroupeError('internal', `${url} answered ${status}, but not like a Troupe server`, { status });
  }
  if (status === 401) {
    const message = unauthorized ?? error.message;
    return new TroupeError('command_refused', message, { status, refused: error.code });
  }
  const code = ERROR_CODES.find((known): known is ErrorCode => known === error.code);
  if (code) return new TroupeError(code, error.message, error.data ?? {});
  return new TroupeError('command_refused', error.message, { ...error.data, status, refused: error.code });
}

/** Null if the answer is not Troupe's, but a proxy's or another program's. */
function parseError(text: string): ErrorBody | null {
  try {
    return (JSON.parse(text) as { error?: ErrorBody }).error ?? null;
  } catch {
    return null;
  }
}
