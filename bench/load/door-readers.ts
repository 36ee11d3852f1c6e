import { Agent, type IncomingMessage, request } from 'node:http';

export type DoorName = 'events' | 'useChat' | 'AG-UI' | 'OpenAI' | 'MCP';

/** What one reader has heard. */
export interface Reader {
  words: string[];
  /** Of the body. */
  bytes: number;
}

/** Begins to read, and resolves with the end of the answer. `most`: words of the answer. */
type Read = (most: number) => Promise<Reader>;

interface Place {
  url: string;
  key: string;
  conversation: string;
}

const TEXT = 'Tell me all words.';
const agent = new Agent({ maxSockets: Infinity });

/** Readers that begin when they are called. */
export async function readersOf(
  door: DoorName,
  { count, ...place }: Place & { count: number },
): Promise<Read[]> {
  if (door === 'events') return eventReaders(place, count);
  const read = () => (door === 'MCP' ? readTool(place) : readDoor(door, place));
  return Array.from({ length: count }, () => read);
}

const POSTS = {
  useChat: {
    path: 'chat',
    body: {
      messages: [{ id: 'chat-1', role: 'user', parts: [{ type: 'text', text: TEXT }] }],
      to: ['agent'],
    },
    deltaOf: (event: Event) => (event.type === 'text-delta' ? event.delta : undefined),
  },
  'AG-UI': {
    path: 'ag-ui?to=agent',
    body: {
      threadId: 't1',
      runId: 'r1',
      messages: [{ id: 'ag-ui-1', role: 'user', content: TEXT }],
    },
    deltaOf: (event: Event) => (event.type === 'TEXT_MESSAGE_CONTENT' ? event.delta : undefined),
  },
  OpenAI: {
    path: 'v1/chat/completions',
    body: { model: 'agent', stream: true, messages: [{ role: 'user', content: TEXT }] },
    deltaOf: ({ choices }: Event) => choices?.[0]?.delta.content,
  },
};

interface Event {
  type?: string;
  delta?: string;
  text?: string;
  result?: { structuredContent: { text: string } };
  choices?: { delta: { content?: string } }[];
}

async function readDoor(door: keyof typeof POSTS, { url, key, conversation }: Place): Promise<Reader> {
  const { path, body, deltaOf } = POSTS[door];
  const response = await ask(`${url}/api/conversations/${conversation}/${path}`, key, body);
  return read(response, (event) => deltaOf(event));
}

/** The stream of the API does not end: the one who reads it leaves with the last word. */
async function eventReaders({ url, key, conversation }: Place, count: number): Promise<Read[]> {
  const streams = await Promise.all(
    Array.from({ length: count }, () => ask(`${url}/api/events?conversation=${conversation}`, key)),
  );
  let isSent = false;
  return streams.map((stream) => async (most) => {
    if (!isSent) {
      isSent = true;
      const author = { kind: 'user', id: 'ana', name: 'Ana' };
      const sent = await ask(`${url}/api/conversations/${conversation}/events`, key, {
        author,
        to: ['agent'],
        content: TEXT,
      });
      sent.resume();
    }
    return read(stream, ({ text }) => text, most);
  });
}

/** The words are in the result; how it comes is told in progress meanwhile. */
async function readTool({ url, key, conversation }: Place): Promise<Reader> {
  const call = {
    name: 'ask',
    arguments: { message: TEXT, agent: 'agent', conversation, wait: 600 },
    _meta: { progressToken: 1 },
  };
  const response = await ask(`${url}/api/mcp`, key, {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: call,
  });
  return read(response, ({ result }) => result?.structuredContent.text);
}

/** Resolves with the head of the answer. */
async function ask(url: string, key: string, body?: object): Promise<IncomingMessage> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'idempotency-key': 'load-1',
  };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(url, { agent, method: body ? 'POST' : 'GET', headers }, resolve);
    sent.on('error', reject);
    sent.end(body && JSON.stringify(body));
  });
  if ((response.statusCode ?? 0) >= 300) throw new Error(`${url} was answered with ${response.statusCode}`);
  return response;
}

/** Reads server-sent events to their end, or to as many words. */
function read(
  response: IncomingMessage,
  deltaOf: (event: Event) => string | undefined,
  most = Infinity,
): Promise<Reader> {
  let [text, rest, bytes] = ['', '', 0];
  response.setEncoding('utf8');
  return new Promise((resolve, reject) => {
    const end = () => resolve({ words: wordsIn(text), bytes });
    response.on('data', (chunk: string) => {
      bytes += chunk.length;
      const frames = (rest + chunk).split('\n\n');
      rest = frames.pop() ?? '';
      for (const frame of frames) {
        const data = frame.slice(frame.indexOf('data: ') + 6);
        if (data.startsWith('{')) text += deltaOf(JSON.parse(data) as Event) ?? '';
      }
      if (most < Infinity && wordsIn(text).length >= most) {
        end();
        response.destroy();
      }
    });
    response.on('end', end);
    response.on('error', reject);
  });
}

function wordsIn(text: string): string[] {
  return text.split(' ').filter((word) => word !== '');
}
