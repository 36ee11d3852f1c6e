import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { Hono } from 'hono';
import { expect, test } from 'vitest';
import { createApp } from '../../src/http/api/index.ts';
import { ANA, startApi } from './harness.ts';

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const SCRIPT = 'export const page = "of a test";'.repeat(40);
const INDEX = `<!doctype html><html><head><base href="/" /><meta name="troupe-token" content="" />
<meta name="troupe-mode" content="write" /><meta name="troupe-version" content="" /></head>
<body><script type="module" src="./assets/page-1a2b.js"></script></body></html>`;

/** A folder like the output of `npm run build:web`. */
function builtPage(): { folder: string } & Disposable {
  const root = mkdtempSync(path.join(tmpdir(), 'troupe-page-'));
  const folder = path.join(root, 'web');
  mkdirSync(path.join(folder, 'assets'), { recursive: true });
  writeFileSync(path.join(root, 'secret.js'), 'of nobody');
  writeFileSync(path.join(folder, 'index.html'), INDEX);
  writeFileSync(path.join(folder, 'favicon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
  const script = path.join(folder, 'assets/page-1a2b.js');
  writeFileSync(script, SCRIPT);
  writeFileSync(`${script}.br`, brotliCompressSync(SCRIPT));
  writeFileSync(`${script}.gz`, gzipSync(SCRIPT));
  writeFileSync(path.join(folder, 'assets/page-3c4d.css'), 'body{margin:0}');
  writeFileSync(path.join(folder, 'assets/.hidden.js'), 'of nobody');
  return { folder, [Symbol.dispose]: () => rmSync(root, { recursive: true }) };
}

/** The settings in the document, by tag name. */
function saidTo(html: string): Record<string, string | undefined> {
  const meta = (name: string) => new RegExp(`<meta name="troupe-${name}" content="([^"]*)"`).exec(html)?.[1];
  return {
    base: /<base href="([^"]*)"/.exec(html)?.[1],
    token: meta('token'),
    mode: meta('mode'),
    version: meta('version'),
  };
}

test.each([
  ['/', 200],
  ['/index.html', 200],
  ['/costs?since=day', 200],
  ['/c/plan', 200],
  ['/c/plan/t/plan:echo:1?tab=prompt', 200],
  ['/c/plan/t/next', 200],
  ['/c/plan/t/plan:echo:2', 404],
  ['/c/plan/t/plan:nobody:1', 404],
  ['/c/plan/t/seven', 404],
  ['/c/plan/u/plan:echo:1', 404],
  ['/c/unplanned', 404],
  ['/c', 404],
  ['/costs/of/all', 404],
  ['/nowhere/at%20all', 404],
  ['/%E0%A4%A', 404],
] as const)(
  'a browser that requests %s gets the page with the facts it needs and the status %i',
  async (url, status) => {
    using built = builtPage();
    await using api = await startApi({ web: built.folder, writeToken: 'w1', version: '1.2.3' });
    await api.troupe.send('plan', { author: ANA, to: ['echo'], content: 'Plan it.' });
    await api.troupe.idle();
    const response = await api.app.request(url, { headers: HTML });
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    const said = saidTo(await response.text());
    expect(said).toEqual({ base: '/', token: 'w1', mode: 'write', version: '1.2.3' });
  },
);

test('a server that asks for a credential tells nobody without one which conversations there are', async () => {
  using built = builtPage();
  await using api = await startApi({ web: built.folder, token: 'secret' });
  for (const [path, status] of [
    ['/c/plan', 200],
    ['/nowhere', 404],
  ] as const)
    expect((await api.app.request(path, { headers: HTML })).status).toBe(status);
});

test('the document names the files and the answer that the asked view needs', async () => {
  using built = builtPage();
  writeFileSync(
    path.join(built.folder, 'manifest.json'),
    JSON.stringify({
      _first: { file: 'assets/first-1.js', name: 'first', css: ['assets/first-1.css'] },
      _shared: { file: 'assets/shared-1.js', name: 'shared', css: ['assets/shared-1.css'] },
      'src/parts/home.tsx': {
        file: 'assets/home-1.js',
        name: 'home',
        css: ['assets/home-1.css'],
        imports: ['_first', '_shared'],
      },
      _conversation: { file: 'assets/conversation-1.js', name: 'conversation' },
    }),
  );
  await using api = await startApi({ web: built.folder, writeToken: 'w1' });
  const named = async (url: string, headers: Record<string, string> = HTML) => {
    const html = await (await api.app.request(url, { headers })).text();
    return [...html.matchAll(/<link [^>]*href="([^"]*)"/g)].map(([, href]) => href);
  };
  const home = ['shared-1.css', 'home-1.css', 'shared-1.js', 'home-1.js'].map((file) => `./assets/${file}`);
  const answers = ['api/inbox?limit=50&amp;urgent=500', 'api/queues', 'api/stuck?limit=200'];
  expect(await named('/')).toEqual([...answers, ...home]);
  expect(await named('/?state=failed')).toEqual(home);
  expect(await named('/c/a%20plan/t/1?tab=prompt')).toEqual([
    'api/conversations/a%20plan/snapshot?events=40',
    './assets/conversation-1.js',
  ]);
  expect(await named('/c/%22%3E%3Cscript%3E')).toEqual([
    'api/conversations/%22%3E%3Cscript%3E/snapshot?events=40',
    './assets/conversation-1.js',
  ]);
  expect(await named('/c/%E0%A4%A')).toEqual([]);
  expect(await named('/nowhere')).toEqual([]);
  await using closed = await startApi({ web: built.folder, token: 'secret' });
  const html = await (await closed.app.request('/c/plan', { headers: HTML })).text();
  expect(html).toContain('./assets/conversation-1.js');
  expect(html).not.toContain('api/conversations');
});

test.each(['/nope', '/c/plan', '/api/nope', '/metrics', '/assets/nope.js'])(
  'a program that requests %s gets JSON and no page',
  async (url) => {
    using built = builtPage();
    await using api = await startApi({ web: built.folder });
    const { status, body } = await api.get(url, { headers: { accept: '*/*' } });
    expect([status, body]).toMatchObject([404, { error: { code: 'route_unknown' } }]);
  },
);

test.each(['/api/nope', '/api/conversations/nope/events', '/metrics', '/assets/nope.js'])(
  '%s is no page for a browser either',
  async (url) => {
    using built = builtPage();
    await using api = await startApi({ web: built.folder });
    const { status, headers } = await api.get(url, { headers: HTML });
    expect(status).toBe(404);
    expect(headers.get('content-type')).toContain('application/json');
  },
);

test('probes answer a browser like any other client', async () => {
  using built = builtPage();
  await using api = await startApi({ web: built.folder });
  for (const url of ['/healthz', '/readyz', '/api/agents']) {
    const { status, headers } = await api.get(url, { headers: HTML });
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json']);
  }
});

test('the policy of the page forbids foreign content and frames', async () => {
  using built = builtPage();
  await using api = await startApi({ web: built.folder });
  for (const url of ['/', '/favicon.svg']) {
    const { headers } = await api.get(url, { headers: HTML });
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'self'; img-src 'self' blob:; base-uri 'self'; frame-ancestors 'none'; form-action 'none'; object-src 'none'",
    );
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
  }
  // A script or a style is no document: that of the page holds for it.
  for (const url of ['/assets/page-1a2b.js', '/assets/page-3c4d.css']) {
    const { headers } = await api.get(url, { headers: HTML });
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toBeNull();
  }
});

test.each([
  ['br, gzip', 'br'],
  ['gzip, deflate', 'gzip'],
  ['br;q=0, gzip;q=0.5', 'gzip'],
  ['identity', null],
  ['', null],
])('an asset is sent as the browser can read it: "%s" gives %s', async (accepted, encoding) => {
  using built = builtPage();
  await using api = await startApi({ web: built.folder });
  const headers = { 'accept-encoding': accepted };
  const response = await api.app.request('/assets/page-1a2b.js', { headers }, { outgoing: {} });
  expect(response.headers.get('content-encoding')).toBe(encoding);
  expect(response.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
  expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  expect(response.headers.get('vary')).toBe('accept-encoding');
  const bytes = Buffer.from(await response.arrayBuffer());
  const text = encoding === 'br' ? brotliDecompressSync(bytes) : encoding ? gunzipSync(bytes) : bytes;
  expect(text.toString()).toBe(SCRIPT);
});

test('files have their types, and unhashed names are revalidated', async () => {
  using built = builtPage();
  await using api = await startApi({ web: built.folder });
  const icon = await api.app.request('/favicon.svg', { headers: HTML });
  expect([icon.status, icon.headers.get('content-type')]).toEqual([200, 'image/svg+xml']);
  expect(icon.headers.get('cache-control')).toBe('no-cache');
  const css = await api.app.request('/assets/page-3c4d.css', { headers: { 'accept-encoding': 'br' } });
  expect([css.headers.get('content-type'), css.headers.get('content-encoding')]).toEqual([
    'text/css; charset=utf-8',
    null,
  ]);
});

test.each([
  '/../secret.js',
  '/assets/../../secret.js',
  '/assets/..%2f..%2fsecret.js',
  '/%2e%2e/secret.js',
  '/assets/%2e%2e%5csecret.js',
  '/assets//secret.js',
  '/assets/.hidden.js',
  '/assets/page-1a2b.js.br',
  '/assets/page-1a2b.js/x.js',
  '/assets/%00.js',
  '/index.html.br',
])('%s leads to no file', async (url) => {
  using built = builtPage();
  await using api = await startApi({ web: built.folder });
  const response = await api.app.request(`http://127.0.0.1${url}`, { headers: { accept: '*/*' } });
  expect(response.status).toBe(404);
  expect(await response.text()).not.toContain('of nobody');
});

test('an unchanged document is not sent again', async () => {
  using built = builtPage();
  await using api = await startApi({ web: built.folder, writeToken: 'w1' });
  const etag = (await api.app.request('/', { headers: HTML })).headers.get('etag') ?? '';
  expect(etag).toMatch(/^"[\w-]{20,}"$/);
  const again = await api.app.request('/', { headers: { ...HTML, 'if-none-match': etag } });
  expect([again.status, await again.text()]).toEqual([304, '']);
});

test.each([
  ['/inspector', {}, '/inspector/'],
  ['/inspector/', {}, '/inspector/'],
  ['/inspector/c/plan', {}, '/inspector/'],
  ['/inspector/c/plan', { 'x-forwarded-prefix': '/team/a' }, '/team/a/inspector/'],
  ['/inspector', { 'x-forwarded-prefix': '/team/' }, '/team/inspector/'],
  ['/inspector', { 'x-forwarded-prefix': '//evil.example' }, '/inspector/'],
  ['/inspector', { 'x-forwarded-prefix': '/team//' }, '/inspector/'],
  ['/inspector', { 'x-forwarded-prefix': '/a'.repeat(501) }, '/inspector/'],
  ['/inspector', { 'x-forwarded-prefix': '/"><script>' }, '/inspector/'],
])('mounted in another app, %s with %o has the base %s', async (url, more, base) => {
  using built = builtPage();
  await using api = await startApi();
  const outer = new Hono().get('/', (context) => context.text('of the other app'));
  outer.route('/inspector', createApp(api.troupe, { web: built.folder }));
  const response = await outer.request(`http://127.0.0.1${url}`, { headers: { ...HTML, ...more } });
  expect(saidTo(await response.text())['base']).toBe(base);
  expect(await (await outer.request('/')).text()).toBe('of the other app');
});

test('a mounted app serves its files, its API and its refusals under its own path', async () => {
  using built = builtPage();
  await using api = await startApi();
  const outer = new Hono();
  outer.route('/:team/inspector', createApp(api.troupe, { web: built.folder }));
  const ask = (url: string) => outer.request(`http://127.0.0.1/a${url}`, { headers: HTML });
  expect((await ask('/inspector/assets/page-1a2b.js')).headers.get('cache-control')).toContain('immutable');
  expect(saidTo(await (await ask('/inspector/c/x')).text())['base']).toBe('/a/inspector/');
  expect(await (await ask('/inspector/api/agents')).json()).toMatchObject({ agents: [{ id: 'echo' }, {}] });
  const missing = await ask('/inspector/api/nope');
  expect(await missing.json()).toMatchObject({ error: { code: 'route_unknown' } });
  const evil = await outer.request('http://evil.example/a/inspector/', { headers: HTML });
  expect([evil.status, await evil.json()]).toMatchObject([403, { error: { code: 'host_refused' } }]);
});

test('values in the document are escaped', async () => {
  using built = builtPage();
  const nasty = `"><script>x</script>$&$1'`;
  await using api = await startApi({ web: built.folder, version: nasty });
  const html = await (await api.app.request('/', { headers: HTML })).text();
  expect(html).not.toContain('<script>x');
  expect(saidTo(html)['version']).toBe('&quot;&gt;&lt;script&gt;x&lt;/script&gt;$&amp;$1&#39;');
});

test('without a built page a browser is shown how to build it', async () => {
  await using api = await startApi({ web: path.join(tmpdir(), 'troupe-no-such-folder') });
  const response = await api.app.request('/', { headers: HTML });
  expect(response.status).toBe(200);
  expect(await response.text()).toContain('npm run build:web');
  expect(response.headers.get('content-security-policy')).toContain("default-src 'self'");
});

test('an API without a page serves none', async () => {
  await using api = await startApi({ web: false });
  const { status, body } = await api.get('/', { headers: HTML });
  expect([status, body]).toMatchObject([404, { error: { code: 'route_unknown' } }]);
});

test('an invalid file name gives no file', async () => {
  await using api = await startApi();
  const { status } = await api.get(`/${'a.b'.repeat(100)}.ico`);
  expect([status, api.errors]).toEqual([404, []]);
});
