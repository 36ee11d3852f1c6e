import fc from 'fast-check';
import { expect } from 'vitest';
import { TroupeError } from '../../src/base/errors.ts';
import { openSafeFetch } from '../../src/base/net/safe-fetch.ts';
import { fetchTool } from '../../src/tools/builtin/fetch.ts';
import { recordingServer } from '../net/stage.ts';
import { attack } from './attack.ts';
import { only, openStage } from './stage.ts';

/** 127.0.0.1, 169.254.169.254 and other internal addresses, in every notation. */
const inside = fc.constantFrom<[a: number, b: number, c: number, d: number]>(
  [127, 0, 0, 1],
  [127, 1, 2, 3],
  [0, 0, 0, 0],
  [169, 254, 169, 254],
  [10, 0, 0, 1],
  [172, 16, 0, 1],
  [192, 168, 1, 1],
  [100, 64, 0, 1],
);
type Address = [number, number, number, number];
const writing = fc.constantFrom<(address: Address) => string>(
  (address) => address.join('.'),
  ([a, b, c, d]) => `${((a * 256 + b) * 256 + c) * 256 + d}`,
  ([a, b, c, d]) => `0x${[a, b, c, d].map((each) => each.toString(16).padStart(2, '0')).join('')}`,
  (address) => address.map((each) => `0${each.toString(8)}`).join('.'),
  (address) => address.map((each) => `0x${each.toString(16)}`).join('.'),
  ([a, b, c, d]) => `${a}.${b}.${c * 256 + d}`,
  (address) => `[::ffff:${address.join('.')}]`,
  ([a, b, c, d]) => `[::ffff:${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}]`,
  ([a, b, c, d]) => `[64:ff9b::${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}]`,
  (address) => `${address.join('.')}.`,
  (address) => address.join('.').replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
);
const others = fc.constantFrom(
  'http://[::1]/',
  'http://[::]/',
  'http://[fe80::1]/',
  'http://[fd00:ec2::254]/',
  'http://0/',
  'http://localhost/',
  'http://LOCALHOST./',
  'file:///etc/passwd',
  'gopher://127.0.0.1:6379/_FLUSHALL',
  'ftp://127.0.0.1/',
  'data:text/plain,x',
  'javascript:1',
  'unix:/var/run/docker.sock',
  'http://user:pw@example.org/',
  'http://example.org:6379/',
  'http://rebind.test/',
  'http://both.test/',
  'nonsense',
);
const address = fc.oneof(
  fc
    .tuple(inside, writing, fc.constantFrom('http', 'https'))
    .map(([where, write, scheme]) => `${scheme}://${write(where)}/latest/meta-data?token=s3cret`),
  others,
);

/** A resolver whose names resolve differently at each request. */
function rebinding() {
  let asked = 0;
  return async (host: string) => {
    asked += 1;
    const inner = { address: '127.0.0.1', family: 4 };
    if (host === 'both.test') return [{ address: '203.0.113.9', family: 4 }, inner];
    return asked % 2 === 1 ? [inner] : [{ address: '169.254.169.254', family: 4 }];
  };
}

attack(16, 'a fetch reaches no internal address, in any notation or by a redirect', async (refused) => {
  await using insideServer = await recordingServer((_, response) => response.end('the inside'));
  await using public_ = await recordingServer((request, response) => {
    const to = new URL(request.url ?? '/', 'http://x').searchParams.get('to') ?? '/';
    // Headers are bytes.
    response.writeHead(302, { location: Buffer.from(to).toString('latin1') }).end();
  });
  const fetch = openSafeFetch({ allow: ['*', public_.host], resolve: rebinding(), timeoutMs: 3_000 });
  let wanted = '';
  await using stage = await openStage({
    agents: [{ id: 'bo', tools: ['read'] }],
    tools: [{ ...fetchTool({ allow: ['*', public_.host] }, fetch), name: 'read' }],
    answer: ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? { text: 'done' }
        : { calls: [{ name: 'read', args: JSON.stringify({ url: wanted }) }] },
  });
  const codes = new Set<string>();
  await fc.assert(
    fc.asyncProperty(address, fc.boolean(), async (url, isRedirected) => {
      const target = isRedirected ? `http://${public_.host}/?to=${encodeURIComponent(url)}` : url;
      // A redirect without a valid address goes back to the same server, in a loop.
      const thrown: unknown = await fetch(target).catch((error: unknown) => error);
      expect(thrown).toBeInstanceOf(TroupeError);
      const { code, message, data } = thrown as TroupeError;
      expect([url, code]).toEqual([url, 'address_refused']);
      expect(JSON.stringify([message, data])).not.toContain('s3cret');
      codes.add(code);
    }),
    { numRuns: 150 },
  );
  // Another port of this machine, on which a server really listens.
  for (const url of [
    `http://127.0.0.1:${insideServer.port}/`,
    `http://[::ffff:127.0.0.1]:${insideServer.port}/`,
    `http://${public_.host}/?to=http://127.0.0.1:${insideServer.port}/`,
  ])
    await expect(fetch(url)).rejects.toMatchObject({ code: 'address_refused' });
  for (const code of codes) refused(code);

  // As a tool of an agent: a failed result, from which the model learns nothing about the server.
  let round = 0;
  await fc.assert(
    fc.asyncProperty(address, async (url) => {
      wanted = url;
      const conversation = `c${(round += 1)}`;
      await stage.say(conversation, 'read it', { to: ['bo'] });
      const [result] = only(await stage.events(conversation), 'tool.result');
      expect([url, result?.body.outcome]).toEqual([url, 'failed']);
      expect(result?.body.content).not.toMatch(/the inside|root:|s3cret/);
    }),
    { numRuns: 10 },
  );
  refused('tool.result failed');
  expect(insideServer.requests).toEqual([]);
  await fetch.close();
});
