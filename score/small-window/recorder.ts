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
  /** What the model said to the request at the same place, as it came. */
  answers: string[];
}

interface Chunk {
  choices?: { delta?: { content?: string | null } }[];
}

/** The words of a streamed answer. */
export function wordsOf(stream: string): string {
  return stream
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => (JSON.parse(line.slice('data: '.length)) as Chunk).choices?.[0]?.delta?.content ?? '')
    .join('');
}

/** A proxy between Troupe and a real server that records the requests and the answers. */
export async function startRecorder(target: string): Promise<ChatRecorder> {
  const requests: ChatBody[] = [];
  const answers: string[] = [];
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks).toString();
      const at = requests.push(JSON.parse(body) as ChatBody) - 1;
      answers[at] = '';
      const answer = await fetch(`${target}${(incoming.url ?? '').replace(/^\/v1/, '')}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      outgoing.writeHead(answer.status, {
        'content-type': answer.headers.get('content-type') ?? 'text/plain',
      });
      const pieces: Uint8Array[] = [];
      for await (const piece of answer.body ?? []) {
        pieces.push(piece);
        outgoing.write(piece);
      }
      outgoing.end();
      answers[at] = wordsOf(Buffer.concat(pieces).toString());
    })().catch((error: unknown) => outgoing.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    answers,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
