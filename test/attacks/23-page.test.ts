import { request } from 'node:http';
import fc from 'fast-check';
import { expect } from 'vitest';
import { requireToken } from '../../src/http/server-token.ts';
import { serveHttp } from '../../src/http/api/index.ts';
import { Hono } from 'hono';
import { attack } from './attack.ts';
import { ANA, type Answer, openStage, unchanged } from './stage.ts';

const WEB = new URL('../../web/', import.meta.url).pathname;
const PATH = '/api/conversations/c/events';

/** A request with any `Host` and `Origin`, which `fetch` would set itself. */
function send(
  url: string,
  path: string,
  headers: Record<string, string>,
  body?: object,
): Promise<Omit<Answer, 'body'>> {
  return new Promise((resolve, reject) => {
    const call = request(`${url}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { 'content-type': 'application/json', ...headers },
    });
    call.on('error', reject);
    call.on('upgrade', (response) =>
      resolve({ status: response.statusCode ?? 0, headers: new Headers(), text: '' }),
    );
    call.on('response', (response) => {
      let text = '';
      // A stream never ends; its head is enough.
      if (response.headers['content-type']?.startsWith('text/event-stream')) response.destroy();
      response.on('error', () => {});
      response.on('close', () => resolve({ status: response.statusCode ?? 0, headers: new Headers(), text }));
      response.on('data', (bytes: Buffer) => (text += bytes.toString()));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: new Headers(response.headers as Record<string, string>),
          text,
        }),
      );
    });
    call.end(body && JSON.stringify(body));
  });
}

const payload = fc.constantFrom(
  '<img src=x onerror=alert(1)>',
  '<script>alert(1)</script>',
  `"'></title></script><svg onload=alert(1)>`,
  '<a href="javascript:alert(1)">x</a>',
  '</pre></article><iframe src=//evil.example>',
  '<!--',
  '<base href=//evil.example/>',
  '{{constructor.constructor("alert(1)")()}}',
  '&lt;script&gt;',
  '\u202Egnp.exe',
);

attack(23, 'markup is text; foreign pages, foreign host names and sockets get nothing', async (refused) => {
  await using stage = await openStage({
    agents: [
      { id: 'bo', name: 'Mallory <script>alert(1)</script>', description: '<img src=x onerror=alert(1)>' },
    ],
    app: { web: WEB, writeToken: 'token-of-this-start' },
    answer: ({ last }) => ({ text: last }),
  });
  await fc.assert(
    fc.asyncProperty(payload, payload, async (content, name) => {
      const author = { kind: 'user', id: 'eve', name } as const;
      await stage.say('c', content, { author, to: ['bo'] });
      const { headers, text } = await stage.ask('/api/conversations/c/export?format=html');
      expect(headers.get('content-security-policy')).toMatch(/default-src 'none'.*sandbox/);
      expect(text.replace(/<style>[^]*?<\/style>/, '')).not.toMatch(
        /<(?:img|script|svg|iframe|base)\b|<[^>]+\son\w+=|href="?javascript:/i,
      );
    }),
    { numRuns: 12 },
  );
  const page = await stage.ask('/', { headers: { accept: 'text/html' } });
  expect(page.headers.get('content-security-policy')).toMatch(/default-src 'self'.*frame-ancestors 'none'/);
  // The API answers with JSON, which no browser shows as a page.
  const rows = await stage.ask('/api/conversations/c/rows');
  expect(rows.headers.get('content-type')).toContain('application/json');
  refused('shown as text');

  const { host } = new URL(stage.url);
  const own = { host, origin: stage.url, 'x-troupe-token': 'token-of-this-start' };
  const message = { author: ANA, content: 'x' };
  const forged = fc.constantFrom<Record<string, string>>(
    { ...own, origin: 'http://evil.example' },
    { ...own, origin: 'null' },
    { ...own, origin: `http://127.0.0.1:1` },
    { ...own, origin: `${stage.url}.evil.example` },
    { ...own, 'x-troupe-token': '' },
    { ...own, 'x-troupe-token': 'token-of-this-starT' },
    { host, 'sec-fetch-site': 'cross-site' },
    { ...own, host: 'evil.example' },
    { ...own, host: 'localhost.evil.example:80' },
    { ...own, 'content-type': 'text/plain', origin: 'http://evil.example' },
  );
  const codes = new Set<string>();
  await unchanged(stage, () =>
    fc.assert(
      fc.asyncProperty(
        forged,
        fc.constantFrom(PATH, '/api/commands', '/api/import', '/api/keys'),
        async (headers, path) => {
          const { status, text } = await send(stage.url, path, headers, message);
          const { error } = JSON.parse(text) as { error: { code: string } };
          expect([status, error.code]).toEqual([
            403,
            expect.stringMatching(/^(?:origin_refused|token_required|host_refused)$/),
          ]);
          codes.add(`403 ${error.code}`);
        },
      ),
      { numRuns: 60 },
    ),
  );
  expect(codes.size).toBe(3);
  for (const code of codes) refused(code);

  // Another page can open no socket, and cannot write the state of an actor.
  await unchanged(stage, async () => {
    const upgrade = {
      host,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'x3JJHMbDL1EzLkh9GBhXDw==',
      origin: 'http://evil.example',
    };
    for (const path of ['/', '/api/events', '/ws', '/api/inspect'])
      expect((await send(stage.url, path, upgrade)).status).not.toBe(101);
    for (const method of ['PUT', 'PATCH', 'POST', 'DELETE'])
      for (const path of ['actors', 'snapshot', 'rows', 'agents/bo/prompt', 'actors/bo/state'])
        expect((await stage.ask(`/api/conversations/c/${path}`, { method })).status).toBe(
          path.endsWith('state') ? 404 : 405,
        );
  });
  refused('404 route_unknown, 405 method_refused');

  // Another page cannot read either: no answer allows it.
  const read = await send(stage.url, '/api/conversations', { host, origin: 'http://evil.example' });
  expect(read.headers.get('access-control-allow-origin')).toBeNull();
});

attack(23, 'a server is reachable from other machines only if it requires a credential', async (refused) => {
  const server = await serveHttp(new Hono(), { port: 0 });
  expect(new URL(server.url).hostname).toBe('127.0.0.1');
  await server.close();
  for (const host of ['0.0.0.0', '::', '10.0.0.5', 'example.org'])
    expect(() => requireToken(host, {})).toThrow(expect.objectContaining({ code: 'config_invalid' }));
  refused('config_invalid');
});
