import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { boundedFetch } from '../../src/index.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { collectEvents, textOf } from '../../packages/testing/src/provider-conformance.ts';

const ANSWER =
  'data: {"choices":[{"index":0,"delta":{"content":"here"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

/** Redirects from `/v1` to `/v2` and answers there. Every deeper path redirects forever. */
async function startMoved(status: number) {
  const asked: string[] = [];
  const server = createServer((incoming, outgoing) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (text: string) => (body += text));
    incoming.once('end', () => {
      const url = incoming.url ?? '';
      asked.push(`${incoming.method} ${url} ${body.length > 0}`);
      if (url.startsWith('/v2/')) return outgoing.end(ANSWER);
      const location = url.startsWith('/v1/') ? url.replace('/v1/', '/v2/') : url;
      outgoing.writeHead(status, { location }).end('moved');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test.each([307, 308])(
  'a redirect within the origin is followed with the whole request: %i',
  async (status) => {
    await using server = await startMoved(status);
    const provider = createOpenAiCompatible({ baseUrl: `${server.url}/v1`, apiKey: 'k' });
    expect(textOf(await collectEvents(provider))).toBe('here');
    expect(server.asked).toEqual(['POST /v1/chat/completions true', 'POST /v2/chat/completions true']);
  },
);

test('a whole request of a package is sent as it is, over a redirect too', async () => {
  await using server = await startMoved(307);
  const request = new Request(`${server.url}/v1/chat`, { method: 'POST', body: '{}' });
  expect(await (await boundedFetch()(request)).text()).toBe(ANSWER);
  expect(server.asked).toEqual(['POST /v1/chat true', 'POST /v2/chat true']);
});

test.each([301, 302, 303])('a redirect that would drop the request is refused: %i', async (status) => {
  await using server = await startMoved(status);
  const provider = createOpenAiCompatible({ baseUrl: `${server.url}/v1`, apiKey: 'k' });
  expect((await collectEvents(provider)).at(-1)).toMatchObject({
    type: 'failed',
    error: { code: 'provider_redirected', message: expect.stringContaining(`status ${status}`) as string },
  });
  expect(server.asked).toHaveLength(1);
});

test('circular redirects end', async () => {
  await using server = await startMoved(307);
  const provider = createOpenAiCompatible({ baseUrl: `${server.url}/round`, apiKey: 'k' });
  expect((await collectEvents(provider)).at(-1)).toMatchObject({ error: { code: 'provider_redirected' } });
  expect(server.asked).toHaveLength(6);
});
