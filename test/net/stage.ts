import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A server on loopback that records its requests. */
export interface RecordingServer extends AsyncDisposable {
  port: number;
  /** `127.0.0.1:port`, for allow lists and addresses. */
  host: string;
  requests: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[];
}

export async function recordingServer(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  address = '127.0.0.1',
): Promise<RecordingServer> {
  const requests: RecordingServer['requests'] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => void chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      requests.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
      answer(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    host: `127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
