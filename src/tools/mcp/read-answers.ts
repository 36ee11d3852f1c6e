import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/client';
import type { ServerFetch } from './server-fetch.ts';
import type { Wire } from './wire.ts';

type Fetch = ServerFetch['fetch'];

/** What is shown of an answer that is no message. */
const SHOWN_CHARACTERS = 120;
const JSON_TYPE = 'application/json';
const STREAM_TYPE = 'text/event-stream';

/**
 * `fetch` for the client, with answers that it can read. Servers and the proxies before them answer with other content types,
 * other ids, or not at all. Only whole events arrive, each with line feeds: `ServerFetch` sees to that.
 */
export function readAnswers(fetch: Fetch, wire: Wire): Fetch {
  /** Streams that the server may send the answer of any request by. */
  let streams = 0;

  return async (input, init = {}) => {
    const response = await fetch(input, init);
    if (!response.ok) return response;
    const id = requestIn(init);
    if (typeOf(response) === STREAM_TYPE && response.body) {
      if (id !== null) return streamOf(response, response.body, (text) => eventsOf(text, wire, id));
      streams += 1;
      return streamOf(
        response,
        response.body,
        (text) => eventsOf(text, wire),
        () => (streams -= 1),
      );
    }
    if (id === null || (response.status === 202 && streams > 0)) return response;
    return readWhole(response, wire, id);
  };
}

/** Id of the JSON-RPC request that is sent; null for anything else, such as requests of a sign-in. */
function requestIn({ method, body }: RequestInit): RequestId | null {
  if (method !== 'POST' || typeof body !== 'string' || !body.startsWith('{"')) return null;
  const { id, method: called } = JSON.parse(body) as { id?: RequestId; method?: string };
  return called === undefined ? null : (id ?? null);
}

async function readWhole(response: Response, wire: Wire, id: RequestId): Promise<Response> {
  const text = await response.text();
  if (/^(?:event|data|id|retry)?:/.test(text))
    return withText(response, STREAM_TYPE, eventsOf(`${text}\n\n`, wire, id));
  const messages = messagesOf(text, wire, id);
  const failed = wire.fail(id, whyUnread(response, text));
  return withText(response, JSON_TYPE, JSON.stringify(failed ? [...messages, failed] : messages));
}

function messagesOf(text: string, wire: Wire, id: RequestId): JSONRPCMessage[] {
  try {
    return wire.read(text, id);
  } catch {
    return []; // `whyUnread` says what came in place of a message.
  }
}

function whyUnread(response: Response, text: string): string {
  const shown = text.replaceAll(/\s+/g, ' ').trim().slice(0, SHOWN_CHARACTERS);
  if (shown !== '')
    return `it answered with ${typeOf(response) || 'no content type'} that is no message: ${shown}`;
  return response.status === 202
    ? 'it accepted the request (202) and sends no answer'
    : `it answered with nothing (${response.status})`;
}

/** Events with messages that the client can read. All others are left as they are. */
function eventsOf(text: string, wire: Wire, id?: RequestId): string {
  return text
    .split(/\n{2,}/)
    .filter((event) => event !== '')
    .map((event) => `${readEvent(event, wire, id)}\n\n`)
    .join('');
}

function readEvent(event: string, wire: Wire, id: RequestId | undefined): string {
  const lines = event.split('\n');
  const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5));
  const text = data.join('\n').trim();
  if (text === '') return event;
  try {
    const messages = wire.read(text, id).map((message) => `data: ${JSON.stringify(message)}`);
    // Whatever a server calls its events, what is in them are messages.
    const kept = lines.filter((line) => line.startsWith('id:') || line.startsWith('retry:'));
    return [...kept, messages.join('\n\n')].join('\n');
  } catch {
    return event; // The client reports it.
  }
}

/** The stream, changed event by event. The last one may lack the empty line at its end. */
function streamOf(
  response: Response,
  body: ReadableStream<Uint8Array>,
  change: (text: string) => string,
  onEnd: () => void = () => undefined,
): Response {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  // `cancel` is in the standard and in Node, and not in each of the compiler's libraries: given as a variable it is admitted.
  const transformer = {
    transform: (piece: Uint8Array, controller: { enqueue(changed: Uint8Array): void }) =>
      controller.enqueue(encoder.encode(change(decoder.decode(piece, { stream: true })))),
    flush: onEnd,
    cancel: onEnd,
  };
  return new Response(body.pipeThrough(new TransformStream<Uint8Array, Uint8Array>(transformer)), {
    status: 200,
    headers: headersOf(response, STREAM_TYPE),
  });
}

function withText(response: Response, type: string, text: string): Response {
  return new Response(text, { status: 200, headers: headersOf(response, type) });
}

function headersOf(response: Response, type: string): Headers {
  const headers = new Headers(response.headers);
  headers.set('content-type', type);
  // What is passed on has another length, and is not compressed.
  for (const name of ['content-length', 'content-encoding']) headers.delete(name);
  return headers;
}

function typeOf(response: Response): string {
  return (response.headers.get('content-type')?.split(';')[0] ?? '').trim().toLowerCase();
}
