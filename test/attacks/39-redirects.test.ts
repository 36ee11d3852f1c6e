import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { expect } from 'vitest';
import { TroupeError } from '../../src/base/errors.ts';
import { createOpenAiEmbedder } from '../../src/providers/openai/client.ts';
import { attack } from './attack.ts';
import { ANA, only, openStage, VENDOR_KEY } from './stage.ts';

interface Origin extends AsyncDisposable {
  url: string;
  /** The requests it received: method, path, key and body. */
  asked: string[];
}

async function startOrigin(answer: (path: string) => { status: number; location?: string }): Promise<Origin> {
  const asked: string[] = [];
  const server = createServer((incoming, outgoing) => {
    let body = '';
    incoming.setEncoding('utf8').on('data', (text: string) => (body += text));
    incoming.once('end', () => {
      const { method, url = '', headers } = incoming;
      asked.push([method, url, headers.authorization ?? headers['x-api-key'], body].join(' '));
      const { status, location } = answer(url);
      outgoing.writeHead(status, location === undefined ? {} : { location }).end();
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

const PROVIDERS = ['openai-compatible', 'openai', 'anthropic'] as const;
const SECRET = 'only between us';

attack(39, 'a vendor that redirects a prompt to another server', async (refused) => {
  await using thief = await startOrigin(() => ({ status: 200 }));
  const port = new URL(thief.url).port;
  let way = { status: 307, location: '' };
  await using vendor = await startOrigin(() => way);
  await using stage = await openStage({
    agents: [
      ...PROVIDERS.map((provider) => ({ id: provider, provider, model: 'm', baseUrl: `${vendor.url}/v1` })),
      'cy',
    ],
  });
  const embedder = createOpenAiEmbedder({ baseUrl: `${vendor.url}/v1`, apiKey: VENDOR_KEY, model: 'm' });
  const locations = fc.constantFrom(
    `http://127.0.0.1:${port}/v1/chat/completions`,
    `//127.0.0.1:${port}/x`,
    `http://localhost:${port}/`,
    `http://user:pass@127.0.0.1:${port}/`,
    `HTTP://127.0.0.1:${port}`,
    `http://[::1]:${port}/`,
    `https://127.0.0.1:${port}/`,
    `file:///etc/passwd`,
    `data:text/event-stream,x`,
    'http://',
  );
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(301, 302, 303, 307, 308),
      locations,
      fc.constantFrom(...PROVIDERS),
      async (status, location, agent) => {
        way = { status, location };
        const conversation = `c${(run += 1)}`;
        const before = vendor.asked.length;
        await stage.troupe.send(conversation, { author: ANA, content: SECRET, to: [agent, 'cy'] });
        await stage.troupe.idle();
        const events = await stage.events(conversation);
        const [failed, ...more] = only(events, 'turn.failed');
        expect(more).toEqual([]);
        expect(failed?.body.code).toBe('provider_redirected');
        expect(failed?.body.message).toContain(vendor.url);
        expect(failed?.body.message).not.toContain('pass');
        // One request, to the right server; the other agents continue.
        expect(vendor.asked).toHaveLength(before + 1);
        expect(vendor.asked.at(-1)).toContain(SECRET);
        expect(only(events, 'message').some(({ author }) => author.id === 'cy')).toBe(true);
        refused('turn.failed provider_redirected');

        const embedding: unknown = await embedder
          .embed([SECRET], { signal: new AbortController().signal })
          .catch((thrown: unknown) => thrown);
        expect(embedding).toBeInstanceOf(TroupeError);
        expect((embedding as TroupeError).code).toBe('provider_redirected');
      },
    ),
    { numRuns: 40 },
  );
  expect(thief.asked).toEqual([]);
});

attack(39, 'a remote troupe that redirects a command and its key', async (refused) => {
  const { createHttpClient } = await import('../../src/cli/client/http-client.ts');
  await using thief = await startOrigin(() => ({ status: 200 }));
  await using server = await startOrigin((path) => ({ status: 307, location: `${thief.url}${path}` }));
  const client = createHttpClient(server.url, 'trp_key');
  const said: unknown = await client
    .send('c', { author: ANA, content: SECRET, to: [] } as never)
    .catch((thrown: unknown) => thrown);
  expect(said).toBeInstanceOf(TroupeError);
  expect((said as TroupeError).code).toBe('address_refused');
  expect((said as TroupeError).message).toContain(thief.url);
  expect(thief.asked).toEqual([]);
  refused('address_refused');
});
