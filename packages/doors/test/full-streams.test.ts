import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { overHttp, textOf } from './mcp-client.ts';
import { openStage } from './stage.ts';
import { say } from './ui-chat.ts';

interface Asking {
  url: string;
  headers: Record<string, string>;
}

/** The status of the answer, after its end. */
async function post({ url, headers }: Asking, door: string, body: object): Promise<number> {
  const response = await fetch(`${url}/api/conversations/c1/${door}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await response.text();
  return response.status;
}

async function callTool({ url, headers }: Asking): Promise<number> {
  const client = await overHttp(url, { headers });
  const result = await client.callTool({ name: 'ask', arguments: { message: 'x', conversation: 'c1' } });
  await client.close();
  if (!result.isError) return 200;
  return textOf(result).startsWith('rate_limited: at most 1 open streams') ? 429 : 500;
}

const said = { threadId: 't1', runId: 'r1', messages: [{ id: 'm1', role: 'user', content: 'x' }] };

test.each<[string, (asking: Asking) => Promise<number>]>([
  ['useChat', (asking) => post(asking, 'chat', say([{ type: 'text', text: 'x' }]))],
  ['AG-UI', (asking) => post(asking, 'ag-ui', said)],
  ['MCP', callTool],
])('%s: a message that finds all streams taken is refused and not stored', async (_, ask) => {
  await using stage = await openStage(['bo'], { isKeyed: true, app: { traffic: { streams: 1 } } });
  const { troupe, url } = stage;
  const { secret } = await troupe.keys.create({ name: 'phone', scopes: ['read', 'write'] });
  const headers = { authorization: `Bearer ${secret}` };
  const [open] = (await once(get(`${url}/api/events`, { headers }), 'response')) as [IncomingMessage];
  open.on('error', () => {});
  expect(await ask({ url, headers })).toBe(429);
  await expect(troupe.events('c1')).rejects.toMatchObject({ code: 'conversation_unknown' });
  open.destroy();
  // The place is free again, once for each request.
  await expect.poll(() => ask({ url, headers })).toBe(200);
  expect(await ask({ url, headers })).toBe(200);
  const { events } = await troupe.events('c1');
  expect(JSON.stringify(events)).toContain('bo answers 1');
});
