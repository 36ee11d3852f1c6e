import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach } from 'vitest';

interface Call {
  method: string;
  params: {
    id?: string;
    message?: { messageId: string; contextId?: string; taskId?: string; parts: unknown };
  };
}
/** The results of a stream. `cut`: the connection is lost after them. `open`: the stream stays open. */
interface Play {
  results?: object[];
  error?: { code: number; message: string };
  end?: 'cut' | 'open';
}

interface Remote {
  url: string;
  calls: Call[];
  headers: IncomingMessage['headers'];
  /** By method. */
  plays: Record<string, Play[]>;
  /** Where the card says the interface is. Null: at this server. */
  foreign: string | null;
  /** Further fields of the card. */
  more: object;
  /** A task was cancelled. */
  cancelled: PromiseWithResolvers<void>;
}

export const remote: Remote = {
  url: '',
  calls: [],
  headers: {},
  plays: {},
  foreign: null,
  more: {},
  cancelled: Promise.withResolvers(),
};

/** A remote agent on 127.0.0.1, for the tests of this file. It answers as `plays` says. */
export function serveRemote(): void {
  const server = createServer((request, response) => void serve(request, response));
  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    remote.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    const { url, headers } = remote;
    const cancelled = Promise.withResolvers<void>();
    Object.assign(remote, { url, headers, calls: [], plays: {}, foreign: null, more: {}, cancelled });
  });
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  remote.headers = request.headers;
  if (request.url === '/.well-known/agent-card.json') {
    const at = {
      url: `${remote.foreign ?? remote.url}/rpc`,
      protocolBinding: 'JSONRPC',
      protocolVersion: '1.0',
    };
    response.end(
      JSON.stringify({ supportedInterfaces: [at], capabilities: { streaming: true }, ...remote.more }),
    );
    return;
  }
  const call = JSON.parse(await text(request)) as Call;
  remote.calls.push(call);
  if (call.method === 'CancelTask') remote.cancelled.resolve();
  const { results = [], error, end } = remote.plays[call.method]?.shift() ?? {};
  const answer = (part: object) => JSON.stringify({ jsonrpc: '2.0', id: 1, ...part });
  if (error || !call.method.startsWith('S')) {
    response.setHeader('content-type', 'application/json');
    response.end(answer(error ? { error } : { result: results[0] }));
    return;
  }
  response.setHeader('content-type', 'text/event-stream');
  for (const result of results) response.write(`data: ${answer({ result })}\n\n`);
  if (end === 'open') return;
  if (end === 'cut') response.write(':\n', () => response.destroy());
  else response.end();
}

export const ids = { taskId: 't1', contextId: 'c1' };
export const piece = (words: string, append = true) => ({
  artifactUpdate: { ...ids, artifact: { artifactId: 'a', parts: [{ text: words }] }, append },
});
export const status = (state: string, words?: string) => ({
  statusUpdate: {
    ...ids,
    status: {
      state: `TASK_STATE_${state}`,
      ...(words !== undefined && { message: { parts: [{ text: words }] } }),
    },
  },
});
export const task = (state: string, words: string) => ({
  id: 't1',
  contextId: 'c1',
  status: { state: `TASK_STATE_${state}` },
  artifacts: [{ artifactId: 'a', parts: [{ text: words }] }],
});
