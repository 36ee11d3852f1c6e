import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';

export type Vendor = 'openai-compatible' | 'openai' | 'anthropic';

/** The parts of an answer as stream frames of one API. */
export interface Frames {
  head: string;
  text: (text: string) => string;
  reasoning: (text: string) => string;
  call: (index: number, args: string) => string;
  /** More arguments of that call. */
  more: (index: number, args: string) => string;
}

const event = (data: { type: string; [key: string]: unknown }) =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
const delta = (given: unknown) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: given }] })}\n\n`;
const block = (index: number, content_block: object) =>
  event({ type: 'content_block_start', index, content_block });
const blockDelta = (index: number, given: object) =>
  event({ type: 'content_block_delta', index, delta: given });
const item = (given: object) => event({ type: 'response.output_item.done', item: given });

export const FRAMES: Readonly<Record<Vendor, Frames>> = {
  'openai-compatible': {
    head: delta({ role: 'assistant', content: '' }),
    text: (content) => delta({ content }),
    reasoning: (text) => delta({ reasoning_content: text }),
    call: (index, args) =>
      delta({ tool_calls: [{ index, id: `c${index}`, function: { name: 'add', arguments: args } }] }),
    more: (index, args) => delta({ tool_calls: [{ index, function: { arguments: args } }] }),
  },
  openai: {
    head: event({ type: 'response.created', response: {} }),
    text: (text) => event({ type: 'response.output_text.delta', delta: text }),
    reasoning: (text) => item({ type: 'reasoning', id: 'r', summary: [{ type: 'summary_text', text }] }),
    call: (index, args) =>
      item({ type: 'function_call', call_id: `c${index}`, name: 'add', arguments: args }),
    more: (index, args) =>
      item({ type: 'function_call', call_id: `c${index}`, name: 'add', arguments: args }),
  },
  anthropic: {
    head:
      event({ type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 1 } } }) +
      block(0, { type: 'text', text: '' }) +
      block(1, { type: 'thinking', thinking: '', signature: '' }),
    text: (text) => blockDelta(0, { type: 'text_delta', text }),
    reasoning: (thinking) => blockDelta(1, { type: 'thinking_delta', thinking }),
    call: (index, args) =>
      block(index + 2, { type: 'tool_use', id: `c${index}`, name: 'add', input: {} }) +
      blockDelta(index + 2, { type: 'input_json_delta', partial_json: args }),
    more: (index, args) => blockDelta(index + 2, { type: 'input_json_delta', partial_json: args }),
  },
};

export interface HostileVendor extends AsyncDisposable {
  url: string;
  /** Outcome of each request: bytes sent, and whether the client disconnected before all were sent. */
  answers: { sent: number; isCut: boolean }[];
}

/** Answers every request with the output of `pour`, until the client disconnects or a byte limit is reached. */
export async function startHostileVendor(
  pour: (request: { number: number; path: string; body: string }) => Iterable<string | Buffer>,
  mostBytes: number,
  headers: Record<string, string> = { 'content-type': 'text/event-stream' },
): Promise<HostileVendor> {
  const answers: HostileVendor['answers'] = [];
  const server = createServer((incoming, outgoing) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (text: string) => (body += text));
    incoming.once('end', () => {
      const answer = { sent: 0, isCut: false };
      answers.push(answer);
      outgoing.writeHead(200, headers);
      const parts = pour({ number: answers.length, path: incoming.url ?? '', body });
      send(outgoing, parts, answer).catch(() => outgoing.destroy());
    });
  });

  async function send(
    outgoing: ServerResponse,
    parts: Iterable<string | Buffer>,
    answer: HostileVendor['answers'][number],
  ): Promise<void> {
    const gone = once(outgoing, 'close');
    for (const part of parts) {
      if (outgoing.destroyed) answer.isCut = true;
      if (outgoing.destroyed || answer.sent >= mostBytes) break;
      answer.sent += part.length;
      if (!outgoing.write(part)) await Promise.race([once(outgoing, 'drain'), gone]);
    }
    outgoing.end();
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    answers,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
