import { expect, it } from 'vitest';
import { nextHop } from '../../src/base/net/redirects.ts';

const hop = { url: new URL('https://a.test/x/y?z=1'), headers: { authorization: 'Bearer k', accept: 'a/b' } };

it('a redirect needs a status and a location, and never leads from https to http', () => {
  expect(nextHop(hop, 200, '/z')).toBeNull();
  expect(nextHop(hop, 304, '/z')).toBeNull();
  expect(nextHop(hop, 302, undefined)).toBeNull();
  expect(nextHop(hop, 308, '../z')).toMatchObject({ url: new URL('https://a.test/z'), headers: hop.headers });
  expect(nextHop(hop, 301, 'http://a.test/z')).toEqual({ refused: 'it redirects from https to http' });
  expect(nextHop(hop, 301, 'http://[')).toEqual({ refused: 'it redirects to an invalid address' });
});

it('another port or scheme is another origin, which gets harmless headers only', () => {
  for (const to of ['https://a.test:8443/', 'https://b.test/', 'https://a.test.b.test/'])
    expect(nextHop(hop, 307, to)).toMatchObject({ headers: { accept: 'a/b' } });
  expect(JSON.stringify(nextHop(hop, 307, 'https://b.test/'))).not.toContain('Bearer');
});
