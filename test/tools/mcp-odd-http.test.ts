import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { createToolContext } from '../../packages/testing/src/tool-context.ts';
import { openMcpTools } from '../../src/tools/mcp/open-mcp-tools.ts';
import { McpServers } from '../../src/tools/mcp/settings.ts';
import { runTool } from '../../src/tools/run-tool.ts';
import type { Tool } from '../../src/tools/tool.ts';
import { event, json, type OddRequest, startOddHttp } from '../support/odd-mcp.ts';
import { untilHolds } from '../support/until-holds.ts';
import { caller, mcpRoom } from './mcp-stage.ts';

const ana = caller('ana', ['it/*'], { look: ['it__look', { city: 'Oslo' }] });
const UNKNOWN = 'whether it had an effect is not known';
const text = '{"type":"text","text":"sun"}';

const sun = (id: string) => `{"jsonrpc":"2.0","id":${id},"result":{"content":[${text}]}}`;
const answer = (response: ServerResponse, type: string, body: string, status = 200) =>
  void response.writeHead(status, type === '' ? {} : { 'content-type': type }).end(body);

test.each<[what: string, answer: (request: OddRequest, response: ServerResponse) => void]>([
  ['JSON named as text', ({ id }, response) => answer(response, 'text/plain', sun(id))],
  ['JSON without a content type', ({ id }, response) => answer(response, '', sun(id))],
  ['JSON with a charset', ({ id }, response) => answer(response, 'Application/JSON; charset=utf-8', sun(id))],
  ['JSON of status 201', ({ id }, response) => answer(response, 'application/json', sun(id), 201)],
  [
    'a stream named as text',
    ({ id }, response) => answer(response, 'text/plain', `event: message\ndata: ${sun(id)}\n\n`),
  ],
  ['another id', (_, response) => answer(response, 'application/json', sun('"other"'))],
  ['an id that is null', (_, response) => answer(response, 'application/json', sun('null'))],
  [
    'another id in a stream',
    (_, response) => answer(response, 'text/event-stream', `data: ${sun('77')}\n\n`),
  ],
  [
    'an event of another name',
    ({ id }, response) => answer(response, 'text/event-stream', `event: result\ndata: ${sun(id)}\n\n`),
  ],
  [
    'a last event without an empty line',
    ({ id }, response) => answer(response, 'text/event-stream', `data: ${sun(id)}`),
  ],
  [
    'carriage returns',
    ({ id }, response) => answer(response, 'text/event-stream', `data: ${sun(id)}\r\n\r\n`),
  ],
  [
    'lines of a keep-alive before it',
    ({ id }, response) =>
      answer(
        response,
        'text/event-stream',
        `: ping\n\ndata: ping\n\nevent: ping\ndata: {}\n\ndata:\n\ndata: ${sun(id)}\n\n`,
      ),
  ],
])('over HTTP a call answered with %s is done', async (_, how) => {
  await using web = await startOddHttp((request, response) => {
    if (request.method !== 'tools/call') return false;
    how(request, response);
    return true;
  });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { it: { url: web.url } } });
  expect(await room.call('ana', 'look')).toEqual({ outcome: 'done', content: 'sun' });
});

test.each<[what: string, words: RegExp, answer: (request: OddRequest, response: ServerResponse) => void]>([
  [
    'a stream that ends',
    /ended during the call/,
    (_, response) => {
      event(response, '');
      setImmediate(() => response.end());
    },
  ],
  [
    'a stream that is cut',
    /ended during the call/,
    (_, response) => {
      event(response, '');
      setImmediate(() => response.destroy());
    },
  ],
  [
    'a stream of no bytes',
    /ended during the call/,
    (_, response) => answer(response, 'text/event-stream', ''),
  ],
  ['a connection that is cut', /fetch failed|other side/, (_, response) => void response.destroy()],
  [
    'half a body',
    /fetch failed|terminated|no JSON|no message/,
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' });
      response.write('{"jsonrpc"');
      setImmediate(() => response.destroy());
    },
  ],
  [
    '202 alone',
    /accepted the request \(202\) and sends no answer/,
    (_, response) => void response.writeHead(202).end(),
  ],
  ['204', /nothing \(204\)/, (_, response) => void response.writeHead(204).end()],
  ['an empty body', /nothing \(200\)/, (_, response) => answer(response, 'application/json', '')],
  [
    'the page of a proxy',
    /text\/html that is no message: <html>Sign in<\/html>/,
    (_, response) => answer(response, 'text/html', '<html>Sign in</html>'),
  ],
  [
    'the page of a proxy and 502',
    /<html>Bad Gateway<\/html>/,
    (_, response) => answer(response, 'text/html', '<html>Bad Gateway</html>', 502),
  ],
  [
    'half a message',
    /no JSON/,
    ({ id }, response) => answer(response, 'application/json', `{"jsonrpc":"2.0","id":${id},"result":{`),
  ],
  [
    'half a message in a stream that goes on',
    /no JSON/,
    ({ id }, response) => event(response, `{"jsonrpc":"2.0","id":${id},"result":{`),
  ],
  [
    'a result without its envelope',
    /is no message/,
    (_, response) => answer(response, 'application/json', '{"content":[]}'),
  ],
])(
  'over HTTP a call answered with %s ends at once, and says that its effect is not known',
  async (_, words, how) => {
    await using web = await startOddHttp((request, response) => {
      if (request.method !== 'tools/call') return false;
      how(request, response);
      return true;
    });
    await using room = await mcpRoom({ agents: [ana], mcpServers: { it: { url: web.url } } });
    const { outcome, content } = await room.call('ana', 'look');
    expect(outcome).toBe('failed');
    expect(content).toMatch(words);
    expect(content).toContain(UNKNOWN);
    expect(web.requests.filter(({ method }) => method === 'tools/call')).toHaveLength(1);
  },
);

test.each<[what: string, answer: (request: OddRequest, response: ServerResponse) => void]>([
  ['404', (_, response) => answer(response, 'text/plain', 'no such session', 404)],
  [
    '400',
    (_, response) =>
      json(
        response,
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}',
      ),
  ],
  [
    'an error of JSON-RPC',
    ({ id }, response) =>
      json(response, `{"jsonrpc":"2.0","id":${id},"error":{"code":-32001,"message":"Session not found"}}`),
  ],
  ['401 in words', (_, response) => answer(response, 'text/plain', 'Unknown session', 401)],
])('a session that a server forgot and says so with %s is begun again', async (_, how) => {
  let isForgotten = true;
  await using web = await startOddHttp((request, response) => {
    if (request.method !== 'tools/call' || !isForgotten) return false;
    isForgotten = false;
    how(request, response);
    return true;
  });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { it: { url: web.url } } });
  expect(await room.call('ana', 'look')).toEqual({ outcome: 'done', content: 'sun' });
  expect(web.requests.filter(({ method }) => method === 'initialize')).toHaveLength(2);
});

test.each<[what: string, answer: (request: OddRequest, response: ServerResponse) => void]>([
  ['the page of a proxy', (_, response) => answer(response, 'text/html', '<html>Sign in</html>')],
  ['502', (_, response) => answer(response, 'text/html', '<html>Bad Gateway</html>', 502)],
  ['nothing', (_, response) => void response.writeHead(202).end()],
  ['an array', (_, response) => json(response, '[]')],
])('a server that answers everything with %s is left out, and the troupe starts', async (_, how) => {
  await using web = await startOddHttp((request, response) => how(request, response) === undefined);
  await using good = await startOddHttp(() => false);
  const bo = caller('bo', ['good/*'], { look: ['good__look'] });
  const mcpServers = { it: { url: web.url }, good: { url: good.url } };
  await using room = await mcpRoom({ agents: [ana, bo], mcpServers });
  expect(room.warnings).toEqual([expect.stringContaining('mcpServers.it: it cannot be used')]);
  expect(await room.call('bo', 'look')).toEqual({ outcome: 'done', content: 'sun' });
});

test('a server without ping keeps its session when a stream breaks or says something odd', async () => {
  await using web = await startOddHttp((request, response) => {
    if (request.method === 'GET') answer(response, 'text/plain', 'no streams here', 500);
    else if (request.method === 'ping')
      json(
        response,
        `{"jsonrpc":"2.0","id":${request.id},"error":{"code":-32601,"message":"Method not found"}}`,
      );
    else if (request.method === 'tools/call') {
      event(response, '{"odd":true}');
      void untilHolds(() => expect(web.requests.some(({ method }) => method === 'ping')).toBe(true)).then(
        () => event(response, sun(request.id)),
      );
    } else return false;
    return true;
  });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { it: { url: web.url } } });
  expect(await room.call('ana', 'look')).toEqual({ outcome: 'done', content: 'sun' });
  expect(await room.call('ana', 'look')).toEqual({ outcome: 'done', content: 'sun' });
  expect(room.warnings).toEqual([]);
  expect(web.requests.filter(({ method }) => method === 'initialize')).toHaveLength(1);
});

test.each<[what: string, answer: (response: ServerResponse) => void]>([
  ['500', (response) => answer(response, 'text/plain', 'Internal Server Error', 500)],
  ['501 and a page', (response) => answer(response, 'text/html', '<html>Not implemented</html>', 501)],
  ['404 and a page', (response) => answer(response, 'text/html', '<html>Not found</html>', 404)],
  ['405', (response) => void response.writeHead(405).end()],
  ['a page', (response) => answer(response, 'text/html', '<html>Hello</html>')],
  ['an empty object', (response) => json(response, '{}')],
  ['202', (response) => void response.writeHead(202).end()],
  ['a cut connection', (response) => void response.destroy()],
  ['a stream that ends', (response) => answer(response, 'text/event-stream', ': no\n\n')],
  ['nothing', () => undefined],
])('an old server that answers the question for the newest revision with %s works', async (_, how) => {
  await using web = await startOddHttp((request, response) => {
    if (request.method !== 'server/discover') return false;
    how(response);
    return true;
  });
  const it = { url: web.url, timeoutMs: 3_000 };
  await using room = await mcpRoom({ agents: [ana], mcpServers: { it } });
  expect(room.warnings).toEqual([]);
  expect(await room.call('ana', 'look')).toEqual({ outcome: 'done', content: 'sun' });
});

test('reports of progress begin the time of a call anew, up to ten times its limit', async () => {
  const clock = createFakeClock();
  let report: () => void = () => undefined;
  await using web = await startOddHttp((request, response) => {
    if (request.method !== 'tools/call') return false;
    const { params } = JSON.parse(request.text) as { params: { _meta: { progressToken: number } } };
    const { progressToken } = params._meta;
    report = () =>
      event(
        response,
        JSON.stringify({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken, progress: 1, total: null, message: null },
        }),
      );
    report();
    return true;
  });
  const mcp = await openMcpTools(McpServers.parse({ it: { url: web.url } }), {
    env: {},
    clock,
    onWarning: () => undefined,
  });
  let reports = 0;
  const context = createToolContext({ progress: () => void (reports += 1) });
  const run = runTool(mcp.tools[0] as Tool, { id: 'c1', name: 'it__look', args: '{}' }, context, { clock });
  await untilHolds(() => expect(reports).toBe(1));
  for (let minute = 1; minute <= 10; minute += 1) {
    await clock.advance(59_000);
    report();
    await untilHolds(() => expect(reports).toBe(minute + 1));
  }
  await clock.advance(59_000);
  expect(await run).toEqual({
    outcome: 'failed',
    text: expect.stringContaining('took longer than 600000 ms and was stopped') as string,
  });
  await mcp.close();
});
