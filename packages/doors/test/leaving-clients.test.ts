import { expect, test, vi } from 'vitest';
import { heldReply, openStage } from './stage.ts';

const GO = [{ role: 'user', content: 'Go.' }];
const A2A = { 'a2a-version': '1.0' };
const MESSAGE = { message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'Go.' }] } };
const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const AG_UI = { threadId: 't', runId: 'r', state: {}, tools: [], context: [], forwardedProps: {} };

interface Asked {
  name: string;
  path: string;
  body: object;
  headers?: Record<string, string>;
}

const ASKED: Asked[] = [
  {
    name: 'chat completions',
    path: 'conversations/c1/v1/chat/completions',
    body: { model: 'bo', messages: GO },
  },
  {
    name: 'chat completions, streamed',
    path: 'conversations/c1/v1/chat/completions',
    body: { model: 'bo', messages: GO, stream: true },
  },
  { name: 'responses', path: 'conversations/c1/v1/responses', body: { model: 'bo', input: 'Go.' } },
  {
    name: 'useChat',
    path: 'conversations/c1/chat',
    body: { messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }], to: ['bo'] },
  },
  {
    name: 'AG-UI',
    path: 'conversations/c1/ag-ui?to=bo',
    body: { ...AG_UI, messages: [{ id: 'u1', role: 'user', content: 'Go.' }] },
  },
  { name: 'A2A', path: 'a2a/bo', body: rpc('SendMessage', MESSAGE), headers: A2A },
  { name: 'A2A over REST', path: 'a2a/bo/message:send', body: MESSAGE, headers: A2A },
  {
    name: 'MCP',
    path: 'mcp',
    body: rpc('tools/call', { name: 'ask', arguments: { message: 'Go.', agent: 'bo' } }),
    headers: { accept: 'application/json, text/event-stream' },
  },
];

test.each(ASKED)(
  '$name: a client that leaves before its answer is no error of the server',
  async ({ path, body, headers }) => {
    const held = heldReply('At last.');
    const errors: unknown[] = [];
    const printed = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    await using stage = await openStage(['bo'], {
      app: { onError: (error) => void errors.push(error) },
      answers: {
        bo: held.answer,
      },
    });
    const leaving = new AbortController();
    const { signal } = leaving;
    const request = { method: 'POST', body: JSON.stringify(body), signal };
    const going = fetch(`${stage.url}/api/${path}`, {
      ...request,
      headers: { 'content-type': 'application/json', ...headers },
    }).then((answer) => answer.text());
    // Only a refusal could come first.
    expect(await Promise.race([held.asked, going])).toBeUndefined();
    leaving.abort();
    await expect(going).rejects.toThrow();
    held.release();
    await stage.troupe.idle();
    // When a later request is answered, the server has noticed that the first client left.
    await fetch(`${stage.url}/api/agents`);
    const told = printed.mock.calls.filter(([line]) => !String(line).startsWith('troupe: '));
    printed.mockRestore();
    expect([errors, told]).toEqual([[], []]);
  },
);
