import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The parts of a chat completion request that are read. */
export interface ChatBody {
  messages: { role: string; content: string }[];
}

export interface ChatRecorder extends AsyncDisposable {
  /** The base URL, with /v1. */
  url: string;
  requests: ChatBody[];
}

/** A proxy between Troupe and a real server that records the requests. */
export async function startRecorder(target: string): Promise<ChatRecorder> {
  const requests: ChatBody[] = [];
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks).toString();
      requests.push(JSON.parse(body) as ChatBody);
      const answer = await fetch(`${target}${(incoming.url ?? '').replace(/^\/v1/, '')}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      outgoing.writeHead(answer.status, {
        'content-type': answer.headers.get('content-type') ?? 'text/plain',
      });
      if (answer.body) for await (const piece of answer.body) outgoing.write(piece);
      outgoing.end();
    })().catch((error: unknown) => outgoing.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
