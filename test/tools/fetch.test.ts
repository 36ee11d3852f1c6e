import fc from 'fast-check';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { FetchSettings } from '../../src/base/net/settings.ts';
import { fetchTool, htmlText } from '../../src/tools/builtin/fetch.ts';
import { BUILTIN_TOOLS } from '../../src/tools/builtin/index.ts';
import { createToolContext } from '../../packages/testing/src/tool-context.ts';
import { runTool } from '../../src/tools/run-tool.ts';
import { recordingServer } from '../net/stage.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';

function run(settings: FetchSettings, args: object) {
  const context = createToolContext();
  const call = { id: 'c', name: 'fetch', args: JSON.stringify(args) };
  return runTool(fetchTool(settings), call, context, { clock: systemClock });
}

const PAGES: Record<string, [type: string, body: string | Buffer]> = {
  '/page': [
    'text/html; charset=utf-8',
    '<!doctype html><html><head><title>T &amp; U</title><style>p{}</style></head><body><script>steal()</script>' +
      '<h1>Head</h1><p>One\n  <b>two</b> &lt;x&gt; &#x1F600; <a href="/next?a=1&amp;b=2">next</a><a href="#top">up</a></p>' +
      '<ul><li>a<li>b</ul><pre>if x:\n    y</pre><!-- <p>hidden</p> --><table><tr><td>1<td>2</table>1 < 2</body></html>',
  ],
  '/json': ['application/json', '{"a":1}'],
  '/latin': ['text/plain; charset=iso-8859-1', Buffer.from([0xe9, 0x74, 0xe9])],
  '/picture': ['image/png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 13])],
  '/lies': ['text/plain', Buffer.from([1, 0, 2])],
  '/charset': ['text/plain; charset=nonsense', 'x'],
  '/unsaid': ['', 'plain words'],
  '/long': ['text/plain', 'x'.repeat(2 * 1_024 * 1_024 + 1)],
};

test('a page is returned as its text, other texts unchanged, and binary content by its name', async () => {
  await using server = await recordingServer(({ url = '' }, response) => {
    if (url === '/moved') return void response.writeHead(302, { location: '/json?key=s3cret' }).end();
    const [type, body] = PAGES[url.split('?')[0] ?? ''] ?? ['text/plain', 'there is no such page'];
    if (type !== '') response.setHeader('content-type', type);
    response.statusCode = url in PAGES || url.includes('?') ? 200 : 404;
    response.end(body);
  });
  const read = async (path: string, more: object = {}) =>
    (await run({ allow: [server.host] }, { url: `http://${server.host}${path}`, ...more })).text;
  expect(await read('/page')).toBe(
    'status: 200\ntype: text/html; charset=utf-8\n\nT & U\n\nHead\n\nOne two <x> 😀 next [/next?a=1&b=2]up\n\n- a\n- b\n\n' +
      'if x:\n    y\n\n1 2\n1 < 2',
  );
  expect(await read('/json')).toBe('status: 200\ntype: application/json\n\n{"a":1}');
  expect(await read('/latin')).toContain('\n\nété');
  expect(await read('/unsaid')).toContain('type: not said\n\nplain words');
  for (const [path, bytes] of Object.entries({ '/picture': 8, '/lies': 3, '/charset': 1 }))
    expect(await read(path)).toMatch(
      new RegExp(`^status: 200\ntype: .*\n${bytes} bytes that are no text, not shown$`),
    );
  expect(await read('/none')).toContain('status: 404');
  expect(await read('/long')).toContain('longer than 2097152 bytes: this is its beginning');
  expect(await read('/moved')).toBe(
    `status: 200\ntype: application/json\nredirected to: http://${server.host}/json\n\n{"a":1}`,
  );
  expect(await read('/json', { method: 'HEAD' })).toBe('status: 200\ntype: application/json');
  expect(server.requests.every(({ method, body }) => /^(?:GET|HEAD)$/.test(method) && body === '')).toBe(
    true,
  );
});

test('failures are described to the model without the rest of the address', async () => {
  await using server = await recordingServer((_request, response) => response.end('inside'));
  const allow = ['10.0.0.1'];
  const cases: [FetchSettings, object, RegExp][] = [
    [{}, { url: `http://${server.host}/?key=s3cret` }, /port \d+ is not allowed/],
    [
      {},
      { url: 'http://169.254.169.254/latest?key=s3cret' },
      /169\.254\.169\.254 is not fetched: its address is link-local/,
    ],
    [{ allow }, { url: 'http://127.0.0.1/s3cret' }, /not on the allow list/],
    [{}, { url: 'http://u:s3cret@example.org/' }, /with a user or a password/],
    [{}, { url: 'file:///s3cret' }, /only http and https/],
    [{}, { url: `http://${server.host}/`, method: 'POST' }, /GET/],
    [{}, { url: `http://x/${'a'.repeat(3_000)}` }, /2048/],
    [
      { allow: ['127.0.0.1:1'] },
      { url: 'http://127.0.0.1:1/s3cret' },
      /nothing was fetched from 127.0.0.1: ECONNREFUSED/,
    ],
  ];
  for (const [settings, args, words] of cases) {
    const { outcome, text } = await run(settings, args);
    expect([outcome, text]).toEqual(['failed', expect.stringMatching(words)]);
    expect(text).not.toContain('s3cret');
  }
  expect(server.requests).toEqual([]);
});

test('the settings are validated with the definition, and the tool is built in', () => {
  expect(FetchSettings.safeParse({ allow: ['*.example.org', '10.0.0.0/8', '[::1]:80'] }).success).toBe(true);
  for (const wrong of [{ allow: ['http://x'] }, { allow: '*' }, { maxBytes: 0 }, { proxy: 'x' }])
    expect(FetchSettings.safeParse(wrong).success).toBe(false);
  expect(BUILTIN_TOOLS).toContain('fetch');
});

test('no page is expensive to read: the time grows with its length', async () => {
  const pieces = [
    '<',
    '<!--',
    '-->',
    '<script',
    '<script>',
    '</script',
    '<a href="',
    '"',
    '<pre>',
    '&#',
    '&#xFFFFFF;',
    ' ',
    '\n',
    '<p',
    '>',
    'x',
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 60 }), (parts) => {
      expect(htmlText(parts.join(''))).not.toMatch(/<\/?script/i);
    }),
  );
  // Quadratic time would be hours.
  for (const piece of pieces) {
    const text = piece.repeat(2_000_000 / piece.length);
    expect(await cpuMsOf(() => htmlText(text)), piece).toBeLessThan(2_000);
  }
});
