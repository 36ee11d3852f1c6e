import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  text: string;
  body: { type: string; tenant: string; conversation: string; event: { id: string; seq: number } };
}

/** The answer to each request; `never`: none. */
export type Answers = (
  received: Received,
  count: number,
) => { status: number; headers?: Record<string, string> } | 'never';

/** An HTTP server on this machine that records its requests. */
export interface Receiver extends AsyncDisposable {
  url: string;
  host: string;
  received: Received[];
  answer: Answers;
  /** Closes its port and all connections. */
  goDown(): Promise<void>;
  comeUp(): Promise<void>;
}

export async function startReceiver(answer: Answers = () => ({ status: 204 })): Promise<Receiver> {
  const received: Received[] = [];
  const server: Server = createServer((request, response) => void answerTo(request, response));
  async function answerTo(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const each = { path: request.url ?? '', headers: request.headers, text, body: JSON.parse(text) };
    received.push(each);
    const answered = receiver.answer(each, received.length);
    if (answered !== 'never') response.writeHead(answered.status, answered.headers).end('thank you');
  }
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  async function goDown(): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  }
  const host = `127.0.0.1:${port}`;
  const receiver: Receiver = {
    url: `http://${host}/hook`,
    host,
    received,
    answer,
    goDown,
    comeUp: () => listen(port),
    [Symbol.asyncDispose]: goDown,
  };
  return receiver;
}
