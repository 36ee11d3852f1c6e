import { expect, test } from 'vitest';
import { UMA } from '../../../test/support/company.ts';
import { overHttp, textOf } from './mcp-client.ts';
import { keyOfMine, openStage, PAY, PAYS } from './stage.ts';

const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

test('the server is behind the keys: none is 401, a conversation that was not granted is unknown', async () => {
  await using stage = await openStage(['bo'], { isKeyed: true });
  const { troupe, url } = stage;
  await troupe.send('yours-1', { author: UMA, content: 'Secret.', to: ['bo'] });
  await troupe.idle();
  await expect(overHttp(url, { headers: bearer('wrong') })).rejects.toThrow(/401|Unauthorized/);
  const secret = await keyOfMine(stage);
  const client = await overHttp(url, { headers: bearer(secret) });
  const refused = await client.callTool({
    name: 'ask_bo',
    arguments: { message: 'x', conversation: 'yours-1' },
  });
  expect([refused.isError, textOf(refused)]).toEqual([true, expect.stringContaining('conversation_unknown')]);
  const peeked = await client.callTool({ name: 'status', arguments: { id: 'yours-1:1' } });
  expect(textOf(peeked)).toContain('conversation_unknown');
  await expect(client.readResource({ uri: 'troupe://conversations/yours-1' })).rejects.toThrow(
    'conversation_unknown',
  );
  await expect(client.readResource({ uri: 'troupe://prompts/yours-1:bo:1' })).rejects.toThrow(/unknown/);
  const asked = await client.callTool({ name: 'ask_bo', arguments: { message: 'x' } });
  expect(asked.structuredContent).toMatchObject({ conversation: expect.stringMatching(/^mine-mcp-/) });
  const { resources } = await client.listResources();
  expect(resources.map(({ name }) => name)).toEqual([
    (asked.structuredContent as { conversation: string }).conversation,
  ]);
});

test('a caller has the tools of its scopes', async () => {
  await using stage = await openStage(['bo'], { isKeyed: true });
  const { secret: reads } = await stage.troupe.keys.create({ name: 'r', scopes: ['read'] });
  const { secret: writes } = await stage.troupe.keys.create({ name: 'w', scopes: ['write'] });
  const reader = await overHttp(stage.url, { headers: bearer(reads) });
  expect((await reader.listTools()).tools.map(({ name }) => name)).toEqual(['status']);
  const writer = await overHttp(stage.url, { headers: bearer(writes) });
  expect((await writer.listTools()).tools.map(({ name }) => name)).toEqual(['cancel']);
  const unread = await writer.callTool({ name: 'ask_bo', arguments: { message: 'x' } }).catch(String);
  expect(unread).toMatch(/ask_bo/);
  expect(writer.getServerCapabilities()?.resources).toBeUndefined();
});

test('a repeated request with the same key sends one message', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: ['Once.', 'Twice.'] } });
  const post = async () => {
    const response = await fetch(`${stage.url}/api/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'idempotency-key': 'k:1',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 7,
        method: 'tools/call',
        params: { name: 'ask_bo', arguments: { message: 'Go.' } },
      }),
    });
    return response.text();
  };
  const [first, second] = [await post(), await post()];
  expect(first).toContain('Once.');
  expect(second).toBe(first);
  expect(stage.requests('bo')).toHaveLength(1);
});

test('conversations and prompts are resources', async () => {
  await using stage = await openStage(['bo'], { answers: { bo: ['Blue.'] } });
  const client = await overHttp(stage.url);
  await stage.troupe.ask('sky', { author: UMA, to: ['bo'], content: 'Which colour?' });
  const { resources } = await client.listResources();
  expect(resources).toMatchObject([{ uri: 'troupe://conversations/sky', mimeType: 'text/markdown' }]);
  const { contents } = await client.readResource({ uri: 'troupe://conversations/sky' });
  expect((contents[0] as { text: string }).text).toBe(
    '# sky\n\n**Uma** (1): Which colour?\n\n**@bo** (5): Blue.',
  );
  const prompt = await client.readResource({ uri: `troupe://prompts/${encodeURIComponent('sky:bo:1')}` });
  expect((prompt.contents[0] as { text: string }).text).toContain('Which colour?');
});

test('a request that somebody else has decided meanwhile is said, and the call goes on', async () => {
  await using stage = await openStage(['bo'], {
    tools: [PAY],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [PAYS, 'Paid.'] },
  });
  const { troupe } = stage;
  const client = await overHttp(stage.url, {
    async elicit() {
      const [conversation] = await troupe.conversations();
      const { tasks } = await troupe.tasks(conversation?.id ?? '');
      const request = tasks[0]?.id ?? '';
      await troupe.command(
        { command: 'decide', conversation: conversation?.id ?? '', request, approved: true },
        UMA,
      );
      return { action: 'accept', content: { approved: false } };
    },
  });
  const result = await client.callTool({ name: 'ask_bo', arguments: { message: 'Pay.' } });
  expect(result.structuredContent).toMatchObject({ status: 'answered', text: 'Paid.' });
  expect(textOf(result)).toContain('[Not taken:');
});

test('what the user declines stays open, and the client is told', async () => {
  await using stage = await openStage(['bo'], {
    tools: [PAY],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [PAYS, 'Paid.'] },
  });
  let asked = 0;
  const client = await overHttp(stage.url, {
    elicit() {
      asked += 1;
      return { action: 'decline' };
    },
  });
  const result = await client.callTool({ name: 'ask_bo', arguments: { message: 'Pay.' } });
  expect(result.structuredContent).toMatchObject({ status: 'waiting', waits: [{ kind: 'approval' }] });
  expect(asked).toBe(1);
});

const CALL = { jsonrpc: '2.0', id: 1, method: 'tools/call' };

test.each([
  ['not JSON-RPC', { hello: 1 }],
  ['deep', { ...CALL, params: JSON.parse(`${'['.repeat(500)}${']'.repeat(500)}`) as unknown }],
  ['a text', 'x'],
  ['nothing', null],
  ['a thousand messages', Array.from({ length: 1_000 }, () => CALL)],
])('a body that is %s is refused', async (_, body) => {
  await using stage = await openStage(['bo']);
  const response = await fetch(`${stage.url}/api/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify(body),
  });
  expect([response.status, await response.json()]).toMatchObject([400, { error: { code: 'event_invalid' } }]);
});

test.each([
  ['an unknown agent', 'ask', { message: 'x', agent: 'nobody' }, 'agent_unknown'],
  ['no message', 'ask', {}, 'message'],
  ['a conversation with blanks', 'ask_bo', { message: 'x', conversation: 'a b' }, 'event_invalid'],
  ['a wrong id', 'status', { id: 'x' }, 'event_invalid'],
  ['an event that is not there', 'status', { id: 'x:7' }, 'conversation_unknown'],
  ['an unknown question', 'answer', { conversation: 'x', question: 'q', text: 't' }, '_unknown'],
  ['a wait of a year', 'status', { id: 'x:1', wait: 1e9 }, 'wait'],
])('%s is an error of the tool, in words', async (_, name, args, words) => {
  await using stage = await openStage(['bo']);
  const client = await overHttp(stage.url);
  const result = await client.callTool({ name, arguments: args });
  expect([result.isError, textOf(result)]).toEqual([true, expect.stringContaining(words)]);
});

test('a state that this server has not given is refused', async () => {
  await using stage = await openStage(['bo']);
  const client = await overHttp(stage.url);
  const call = client.request({
    method: 'tools/call',
    params: { name: 'ask_bo', arguments: { message: 'x' }, requestState: '{"id":"a","round":0}' },
  });
  await expect(call).resolves.toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('requestState') }],
  });
  expect(stage.requests('bo')).toHaveLength(0);
});

async function post(url: string, message: object, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/api/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  });
  return { status: response.status, text: await response.text() };
}

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

test.each([
  ['2025-11-25', {}, {}],
  ['2026-07-28', { params: { _meta: META } }, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'ping' }],
  ['2026-07-28, as that of Go writes it', {}, { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'ping' }],
])('a ping of revision %s is answered', async (_, more, headers) => {
  await using stage = await openStage(['bo']);
  const { status, text } = await post(
    stage.url,
    { method: 'ping', ...more },
    headers as Record<string, string>,
  );
  expect(status).toBe(200);
  expect(text).toContain('"result":{');
});

test.each([
  ['troupe://conversations/%E0%A4%A', 'each % is followed by'],
  ['troupe://conversations/%', 'each % is followed by'],
  ['troupe://prompts/%zz', 'each % is followed by'],
  ['troupe://conversations/%00', 'conversation'],
])('a resource at %s is refused with words, and is no error of the server', async (uri, words) => {
  await using stage = await openStage(['bo']);
  const { text } = await post(stage.url, { method: 'resources/read', params: { uri } });
  expect(text).toContain('-32602');
  expect(text).toContain(words);
  expect(text).not.toContain('internal');
});

test('a client may name the origin of the server itself, and no other', async () => {
  await using stage = await openStage(['bo']);
  const { port } = new URL(stage.url);
  const from = (origin: string) => post(stage.url, { method: 'tools/list' }, { origin });
  expect((await from(`http://127.0.0.1:${port}`)).status).toBe(200);
  for (const origin of ['http://evil.example', `http://localhost:${Number(port) + 1}`, 'null']) {
    const { status, text } = await from(origin);
    expect([origin, status]).toEqual([origin, 403]);
    expect(text).toContain('origin_refused');
  }
});
