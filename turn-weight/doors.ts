import { client, methods, ndJsonStream, PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import { serveAcp } from '../packages/doors/src/acp/serve-acp.ts';
import { createApp } from '../src/http/api/index.ts';
import { agentWith, ANA, type Door, type Room, type Scene, type Stage } from './scene.ts';

const COMPANY = {
  agents: [agentWith('agent', { chunk: 4 })],
  doors: ['a2a', 'ag-ui', 'ai-sdk', 'mcp', 'openai'] as const,
};
/** What needs no door of a package opens none. */
const ALONE = { agents: COMPANY.agents };
const BASE = 'http://127.0.0.1';

type Post = (path: string, body: object, headers?: Record<string, string>) => Promise<Response>;

/** A door of the HTTP API, without a socket: how its pieces are cut is then the same each time. */
function httpScene(
  name: string,
  enter: (post: Post, conversation: string, get: Get) => Promise<Room>,
  company: Scene['company'] = COMPANY,
): Scene {
  return {
    name,
    company,
    open({ troupe, clock }) {
      const app = createApp(troupe, { clock });
      const post: Post = async (path, body, headers = {}) => {
        const all = {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...headers,
        };
        const request = { method: 'POST', headers: all, body: JSON.stringify(body) };
        return succeeded(await app.request(`${BASE}${path}`, request));
      };
      const get: Get = async (path, signal) =>
        succeeded(await app.request(`${BASE}${path}`, { headers: { accept: 'text/event-stream' }, signal }));
      return Promise.resolve({ enter: (conversation) => enter(post, conversation, get) });
    },
  };
}

type Get = (path: string, signal: AbortSignal) => Promise<Response>;

async function succeeded(response: Response): Promise<Response> {
  if (response.ok) return response;
  throw new Error(`${response.status}: ${await response.text()}`);
}

/** A door whose response is the answer, and ends with it. */
function postScene(
  name: string,
  requestOf: (conversation: string, text: string, id: string) => [path: string, body: object],
  headers?: Record<string, string>,
): Scene {
  let count = 0;
  return httpScene(name, (post, conversation) =>
    Promise.resolve({
      async turn(text) {
        count += 1;
        const response = await post(
          ...requestOf(conversation, text, `m-${String(count).padStart(4, '0')}`),
          headers,
        );
        await readTo(response, () => false);
      },
    }),
  );
}

/** Reads to the end of the stream, or until `isOver`. */
async function readTo(response: Response, isOver: (text: string) => boolean): Promise<void> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece, { stream: true });
    if (isOver(text)) return;
  }
  if (!text.includes('Unde')) throw new Error(`no answer in ${text.slice(0, 2_000)}`);
}

/** The stream of the API, with one reader who has it open before the message comes. */
const events = httpScene(
  'events',
  async (post, conversation, get) => {
    const over = new AbortController();
    const stream = await get(`/api/events?conversation=${conversation}`, over.signal);
    const reader = stream.body!.getReader();
    const decoder = new TextDecoder();
    return {
      async turn(content) {
        const told = readUntil('"turn.done"');
        await post(`/api/conversations/${conversation}/events`, { author: ANA, to: ['agent'], content });
        await told;
      },
      async leave() {
        over.abort();
        await reader.cancel();
      },
    };

    async function readUntil(word: string): Promise<void> {
      for (let text = ''; !text.includes(word);) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`the stream ended after ${text}`);
        text += decoder.decode(value, { stream: true });
      }
    }
  },
  ALONE,
);

function openAcp({ troupe, clock }: Stage): Promise<Door> {
  const [toAgent, toEditor] = [new TransformStream<Uint8Array>(), new TransformStream<Uint8Array>()];
  const over = new AbortController();
  const served = serveAcp(
    { troupe, clock, author: ANA, version: '1', signal: over.signal },
    ndJsonStream(toEditor.writable, toAgent.readable),
  );
  let said = '';
  const { agent } = client({ name: 'editor' })
    .onNotification(methods.client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text')
        said += update.content.text;
    })
    .onRequest(methods.client.session.requestPermission, () => ({ outcome: { outcome: 'cancelled' } }))
    .connect(ndJsonStream(toAgent.writable, toEditor.readable));
  return Promise.resolve({
    async enter() {
      await agent.request(methods.agent.initialize, {
        protocolVersion: PROTOCOL_VERSION,
        clientCapabilities: {},
      });
      const { sessionId } = await agent.request(methods.agent.session.new, { cwd: '/', mcpServers: [] });
      await agent.request(methods.agent.session.setMode, { sessionId, modeId: 'agent' });
      return {
        async turn(text) {
          said = '';
          await agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
          if (!said.includes('noted')) throw new Error(`the editor was told ${JSON.stringify(said)}`);
        },
      };
    },
    async close() {
      over.abort();
      await served;
    },
  });
}

/** One streamed answer by each door. */
export const DOORS: readonly Scene[] = [
  events,
  postScene('openai-chat', (conversation, text) => [
    `/api/conversations/${conversation}/v1/chat/completions`,
    { model: 'agent', stream: true, messages: [{ role: 'user', content: text }] },
  ]),
  postScene('openai-responses', (conversation, text) => [
    `/api/conversations/${conversation}/v1/responses`,
    { model: 'agent', stream: true, input: text },
  ]),
  postScene('ui-stream', (conversation, text, id) => [
    `/api/conversations/${conversation}/chat`,
    { messages: [{ id, role: 'user', parts: [{ type: 'text', text }] }], to: ['agent'] },
  ]),
  postScene('ag-ui', (conversation, text, id) => [
    `/api/conversations/${conversation}/ag-ui?to=agent`,
    { threadId: conversation, runId: `run-${id}`, messages: [{ id, role: 'user', content: text }] },
  ]),
  postScene(
    'a2a',
    (contextId, text, messageId) => [
      '/api/a2a/agent',
      {
        jsonrpc: '2.0',
        id: messageId,
        method: 'SendStreamingMessage',
        params: { message: { messageId, contextId, role: 'ROLE_USER', parts: [{ text }] } },
      },
    ],
    { 'a2a-version': '1.0' },
  ),
  postScene('mcp', (conversation, message, id) => [
    '/api/mcp',
    {
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: {
        name: 'ask',
        arguments: { message, agent: 'agent', conversation, wait: 600 },
        _meta: { progressToken: id },
      },
    },
  ]),
  { name: 'acp', company: ALONE, open: openAcp },
];
