import { brotliCompressSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterEach, expect, it, vi } from 'vitest';
import { TroupeError } from '../../src/base/errors.ts';
import { openGuardedAgent } from '../../src/base/net/guarded-agent.ts';
import { openSafeFetch, type SafeFetch, type SafeFetchSettings } from '../../src/base/net/safe-fetch.ts';
import { recordingServer } from './stage.ts';

const open: SafeFetch[] = [];
function fetchWith(settings: SafeFetchSettings = {}): SafeFetch {
  const fetch = openSafeFetch(settings);
  open.push(fetch);
  return fetch;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});

async function refusalOf(promise: Promise<unknown>): Promise<TroupeError> {
  const thrown: unknown = await promise.then(
    () => 'it was fetched',
    (reason: unknown) => reason,
  );
  if (!(thrown instanceof TroupeError)) throw new Error(`not refused: ${String(thrown)}`);
  return thrown;
}

const INSIDE = [
  'http://127.0.0.1/',
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0x7f.1/',
  'http://0177.0.0.1/',
  'http://127.1/',
  'http://0/',
  'http://0.0.0.0/',
  'http://017700000001/',
  'http://127.0.0.1./',
  'http://１２７.0.0.1/',
  'http://[::1]/',
  'http://[::]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[0:0::1]/',
  'http://[::127.0.0.1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[fd00:ec2::254]/latest/meta-data',
  'http://169.254.169.254/latest/meta-data/',
  'http://0xa9fea9fe/',
  'http://[fe80::1]/',
  'http://10.0.0.1/',
  'https://192.168.1.1/',
  'http://%31%32%37.0.0.1/',
];
it.each(INSIDE)('a non-public address is refused in any notation: %s', async (url) => {
  expect(await refusalOf(fetchWith()(url))).toMatchObject({ code: 'address_refused', policy: 'fix_input' });
});

it.each([
  'file:///etc/passwd',
  'gopher://example.com/',
  'ftp://example.com/',
  'data:text/plain,hello',
  'javascript:1',
  'blob:http://example.com/1',
  'ws://example.com/',
  'unix:/var/run/docker.sock',
  'http://u:p@example.com/',
  'http://example.com:22/',
  'http://example.com:6379/',
  'https://example.com:8443/',
  'http://',
  'nonsense',
  '',
  'http://[fe80::1%25eth0]/',
  'http://[::1',
  '//example.com/',
  'http+unix://%2Fvar%2Frun/',
  'http://example.com:99999/',
])('only web addresses without credentials on their ports are fetched: %s', async (url) => {
  const resolve = vi.fn(async () => [{ address: '127.0.0.1', family: 4 }]);
  expect(await refusalOf(fetchWith({ resolve })(url))).toMatchObject({ code: 'address_refused' });
  expect(resolve).not.toHaveBeenCalled();
});

it('a name with a non-public address is refused, without naming the address', async () => {
  const answers: Record<string, string[]> = {
    'one.test': ['127.0.0.1'],
    'second.test': ['8.8.8.8', '10.20.30.40'],
    'mapped.test': ['::ffff:10.20.30.40'],
    'zone.test': ['fe80::1%lo'],
    localhost: ['::1', '127.0.0.1'],
  };
  const resolve = async (host: string) =>
    (answers[host] ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  for (const host of Object.keys(answers)) {
    const error = await refusalOf(fetchWith({ resolve })(`https://${host}/x?token=s3cret`));
    expect(error).toMatchObject({ code: 'address_refused', data: { host } });
    expect(JSON.stringify([error.message, error.data])).not.toMatch(/s3cret|10\.20|127\.0/);
  }
});

it('the checked address is the one connected to: a name that changes is refused', async () => {
  await using server = await recordingServer((_request, response) => response.end('first'));
  await using inside = await recordingServer((_request, response) => response.end('inside'), '127.0.0.2');
  const answers = ['127.0.0.1', '127.0.0.2', '127.0.0.2'];
  const resolve = vi.fn(async () => [{ address: answers.shift() ?? '', family: 4 }]);
  const reach = () => ({ addresses: (address: string) => (address === '127.0.0.1' ? null : 'inside') });
  const agent = await openGuardedAgent({ reach, resolve, connectTimeoutMs: 1_000 });
  const get = (port: number) =>
    agent.request({ origin: `http://rebind.test:${port}`, path: '/', method: 'GET' });
  expect(await (await get(server.port)).body.text()).toBe('first');
  expect(resolve).toHaveBeenCalledTimes(1);
  await expect(get(inside.port)).rejects.toMatchObject({ code: 'address_refused' });
  expect(inside.requests).toEqual([]);
  await agent.destroy();
});

it('a non-public host is reached only with its address or its port on the allow list', async () => {
  await using server = await recordingServer((_request, response) => response.end('hello'));
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
  const named = fetchWith({ allow: [server.host, `intern.test:${server.port}`], resolve });
  expect(await named(`http://${server.host}/a`)).toMatchObject({ status: 200, isCut: false });
  expect(String((await named(`http://INTERN.test.:${server.port}/`)).body)).toBe('hello');
  for (const allow of [['intern.test'], ['*'], ['*.test'], ['127.0.0.0/8'], ['127.0.0.1'], []]) {
    for (const url of [`http://${server.host}/`, `http://intern.test:${server.port}/`])
      expect((await refusalOf(fetchWith({ allow, resolve })(url))).code).toBe('address_refused');
  }
  for (const allow of [['intern.test'], ['*'], ['*.test'], []])
    expect((await refusalOf(fetchWith({ allow, resolve })('http://intern.test/'))).code).toBe(
      'address_refused',
    );
  expect((await refusalOf(named('http://other.test/'))).data).toMatchObject({
    reason: 'it is not on the allow list',
  });
  expect(server.requests).toHaveLength(2);
});

it('a name is reached if all its addresses are in a range of the list', async () => {
  const reachable = async (allow: string[], ...addresses: string[]) => {
    const resolve = async () => addresses.map((address) => ({ address, family: 4 }));
    return (await refusalOf(fetchWith({ allow, resolve, timeoutMs: 2_000 })('http://x.test/'))).code;
  };
  // No server listens there, so the error shows that it was tried.
  expect(await reachable(['127.9.0.0/16'], '127.9.9.9')).toBe('address_unreachable');
  expect(await reachable(['127.9.0.0/16'], '127.9.9.9', '127.8.9.9')).toBe('address_refused');
  expect(await reachable(['127.9.0.0/16', 'x.test'], '127.9.9.9')).toBe('address_unreachable');
  expect(await reachable(['*.x.test', '127.9.0.0/16'], '8.8.8.8')).toBe('address_refused');
});

it.each([
  'http://x',
  'a b',
  '*.',
  '*.*',
  'a:b',
  '10.0.0.0/33',
  'x/8',
  '10.0.0.0/',
  '',
  '*.1.2.3.4',
  'a@b',
  'h:99999',
  '*.a:80',
])('an allow list refuses an invalid entry: %j', (entry) => {
  expect(() => openSafeFetch({ allow: [entry] })).toThrow(
    expect.objectContaining({ code: 'config_invalid' }),
  );
});

it('every redirect is checked again, and no secret goes to another origin', async () => {
  await using other = await recordingServer((_request, response) => response.end('there'));
  await using server = await recordingServer((request, response) => {
    const to: Record<string, string> = {
      '/same': '/other',
      '/other': `http://${other.host}/x`,
      '/inside': 'http://169.254.169.254/latest',
      '/file': 'file:///etc/passwd',
      '/user': `http://u:p@${other.host}/`,
      '/loop': '/loop',
    };
    response.writeHead(302, { location: to[request.url ?? ''] ?? '/', 'set-cookie': 'a=b' }).end();
  });
  const fetch = fetchWith({ allow: [server.host, other.host] });
  const headers = {
    Authorization: 'Bearer s3cret',
    'X-Key': 's3cret',
    Cookie: 'c=s3cret',
    Accept: 'text/plain',
  };
  const answer = await fetch(`http://${server.host}/same`, { headers });
  expect([String(answer.body), answer.url]).toEqual(['there', `http://${other.host}/x`]);
  expect(server.requests[1]?.headers).toMatchObject({ authorization: 'Bearer s3cret' });
  expect(other.requests[0]?.headers).toMatchObject({ accept: 'text/plain', host: other.host });
  expect(JSON.stringify(other.requests)).not.toContain('s3cret');
  expect(other.requests[0]?.headers.cookie).toBeUndefined();
  for (const path of ['/inside', '/file', '/user', '/loop'])
    expect((await refusalOf(fetch(`http://${server.host}${path}`))).code).toBe('address_refused');
  expect(server.requests.filter(({ url }) => url === '/loop')).toHaveLength(6);
  expect(other.requests).toHaveLength(1);
  const posted = await fetch(`http://${server.host}/other`, {
    method: 'POST',
    body: '{"a":1}',
    maxRedirects: 5,
  });
  expect([posted.status, posted.headers['set-cookie']]).toEqual([302, undefined]);
  expect(server.requests.at(-1)).toMatchObject({ method: 'POST', body: '{"a":1}' });
});

it('a body ends at the limit, before and after decoding', async () => {
  const bomb = gzipSync(Buffer.alloc(64 * 1_024 * 1_024));
  const bodies: Record<string, [string, Buffer]> = {
    '/gzip': ['gzip', gzipSync('hello')],
    '/br': ['br', brotliCompressSync('hello')],
    '/bomb': ['gzip', bomb],
    '/deep': ['gzip, gzip', gzipSync(gzipSync('hello'))],
    '/bad': ['gzip', Buffer.from('not gzip at all')],
  };
  await using server = await recordingServer((request, response) => {
    const [encoding, body] = bodies[request.url ?? ''] ?? ['identity', Buffer.alloc(0)];
    response.setHeader('content-encoding', encoding);
    if (request.url !== '/endless') return void response.end(body);
    const more = (): void =>
      void (response.write('x'.repeat(65_536)) ? setImmediate(more) : response.once('drain', more));
    more();
  });
  const fetch = fetchWith({ allow: [server.host], maxBytes: 100_000 });
  const get = (path: string, options = {}) => fetch(`http://${server.host}${path}`, options);
  expect(String((await get('/gzip')).body)).toBe('hello');
  expect(String((await get('/br')).body)).toBe('hello');
  for (const path of ['/bomb', '/endless']) {
    const { body, isCut } = await get(path);
    expect([body.length, isCut]).toEqual([100_000, true]);
    // The beginning of the decoded body.
    expect(body.buffer.byteLength).toBeLessThan(1_000_000);
  }
  expect((await get('/gzip', { maxBytes: 5 })).isCut).toBe(true);
  expect(await get('/identity')).toMatchObject({ isCut: false, status: 200 });
  for (const path of ['/deep', '/bad']) expect((await refusalOf(get(path))).code).toBe('address_unreachable');
  expect(await get('/gzip', { method: 'HEAD' })).toMatchObject({ status: 200, isCut: false });
});

it('without a wanted body, no body causes an error, and the connection is reused', async () => {
  const connections = new Set<unknown>();
  await using server = await recordingServer((request, response) => {
    connections.add(request.socket);
    const path = request.url ?? '';
    if (path === '/reset') {
      response.writeHead(200, { 'content-length': '100' });
      return void response.write('ok', () => response.destroy());
    }
    if (path === '/silent') return void response.writeHead(200).write('o');
    if (path === '/large') return void response.end('x'.repeat(1_000_000));
    if (path === '/')
      return void response.writeHead(200).write('o', () => setTimeout(() => response.end('k'), 10));
    response.writeHead(200, { 'content-encoding': path.slice(1) }).end('ok');
  });
  const fetch = fetchWith({ allow: [server.host], timeoutMs: 5_000 });
  const post = { method: 'POST', body: '{}', answer: 'head' } as const;
  for (let n = 0; n < 20; n++) await fetch(`http://${server.host}/`, post);
  // The maximum of connections to one host: none was dropped.
  expect(connections.size).toBeLessThanOrEqual(4);
  for (const path of ['/gzip', '/deflate', '/br', '/aws-chunked', '/reset', '/silent', '/large']) {
    const answer = await fetch(`http://${server.host}${path}`, post);
    expect([answer.status, answer.body.length, answer.isCut]).toEqual([200, 0, false]);
  }
  for (const path of ['/gzip', '/deflate', '/br', '/zstd']) {
    expect(await fetch(`http://${server.host}${path}`, { method: 'HEAD' })).toMatchObject({
      status: 200,
      headers: { 'content-encoding': path.slice(1) },
    });
  }
});

it('a silent or slow server is dropped after the timeout, and at once after an abort', async () => {
  await using server = await recordingServer((request, response) => {
    if (request.url === '/drip') setInterval(() => response.write('x'), 20).unref();
  });
  const fetch = fetchWith({ allow: [server.host], timeoutMs: 150 });
  for (const path of ['/silent?key=s3cret', '/drip?key=s3cret']) {
    const error = await refusalOf(fetch(`http://${server.host}${path}`));
    expect([error.code, error.message]).toEqual([
      'address_unreachable',
      'nothing was fetched from 127.0.0.1: it took too long',
    ]);
  }
  const stop = AbortSignal.timeout(30);
  expect((await refusalOf(fetch(`http://${server.host}/`, { signal: stop, timeoutMs: 5_000 }))).code).toBe(
    'aborted',
  );
});

it('no proxy of the environment is used, and only headers of the caller are sent', async () => {
  await using proxy = await recordingServer((_request, response) => response.end('proxied'));
  await using server = await recordingServer((_request, response) => response.end('direct'));
  for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY']) vi.stubEnv(name, `http://${proxy.host}`);
  vi.stubEnv('NODE_USE_ENV_PROXY', '1');
  const headers = { Host: 'inside.test', 'Transfer-Encoding': 'chunked', 'Proxy-Authorization': 'x' };
  const { body } = await fetchWith({ allow: [server.host] })(`http://${server.host}/`, { headers });
  vi.unstubAllEnvs();
  expect(String(body)).toBe('direct');
  expect(proxy.requests).toEqual([]);
  const sent = server.requests[0]?.headers ?? {};
  expect(sent).toEqual({ host: server.host, connection: 'keep-alive', 'accept-encoding': 'gzip, br' });
});

it('no request reaches loopback unless the allow list names it', async () => {
  await using server = await recordingServer((_request, response) => response.end('inside'));
  const fetch = fetchWith({ resolve: async () => [{ address: '127.0.0.1', family: 4 }], timeoutMs: 1_000 });
  const hosts = fc.constantFrom(
    '127.0.0.1',
    '2130706433',
    '[::1]',
    'localhost',
    'a.test',
    '0x7f.1',
    '[::ffff:7f00:1]',
    '０',
  );
  const scheme = fc.constantFrom('http:', 'https:', 'HTTP:', 'http:/', 'file:', ' http:', 'http:\\');
  const urls = fc
    .tuple(
      scheme,
      fc.constantFrom('', 'u@', '@'),
      hosts,
      fc.constantFrom('', `:${server.port}`, ':80'),
      fc.webPath(),
    )
    .map(([protocol, user, host, port, path]) => `${protocol}//${user}${host}${port}${path}`);
  await fc.assert(
    fc.asyncProperty(fc.oneof(urls, fc.string()), async (url) => {
      expect((await refusalOf(fetch(url))).code).toBe('address_refused');
    }),
    { numRuns: 300 },
  );
  expect(server.requests).toEqual([]);
});
