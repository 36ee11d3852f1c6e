import { expect, test } from 'vitest';
import { fetchAttachments, MAX_FILE_BYTES, readAttachments } from '../../src/library/facade/send-message.ts';
import { openSafeFetch, type SafeFetch } from '../../src/base/net/safe-fetch.ts';
import { recordingServer } from './stage.ts';

const DATA = { mediaType: 'text/plain', data: Buffer.from('given').toString('base64') };

test('the content of an address is attached as if it was sent, with one fetch each', async () => {
  await using server = await recordingServer((request, response) => {
    response.setHeader('content-type', 'text/markdown; charset=utf-8').end(`this is ${request.url}`);
  });
  const fetch = openSafeFetch({ allow: [server.host] });
  const at = (path: string) => ({ url: `http://${server.host}${path}` });
  const given = [
    DATA,
    at('/a/notes%20one.md?key=s3cret'),
    { ...at('/'), name: 'n', mediaType: 'text/plain' },
  ];
  const { attachments } = readAttachments(await fetchAttachments(given, fetch));
  expect(attachments).toEqual([
    { type: 'text', mediaType: 'text/plain', text: 'given' },
    {
      type: 'text',
      mediaType: 'text/markdown',
      name: 'notes one.md',
      text: 'this is /a/notes%20one.md?key=s3cret',
    },
    { type: 'text', mediaType: 'text/plain', name: 'n', text: 'this is /' },
  ]);
  expect(server.requests).toHaveLength(2);
  await fetch.close();
});

test('a failing fetch refuses the message, with attachment and reason but without the address', async () => {
  await using server = await recordingServer(({ url = '' }, response) => {
    if (url === '/inside') response.writeHead(302, { location: 'http://169.254.169.254/' });
    else if (url.startsWith('/none')) response.statusCode = 404;
    response.end(url === '/large' ? Buffer.alloc(MAX_FILE_BYTES + 1) : 'x');
  });
  const fetch = openSafeFetch({ allow: [server.host] });
  const refused = (url: string, by: typeof fetch | null = fetch) =>
    fetchAttachments([DATA, { url }], by).catch((thrown: unknown) => thrown);
  const own = `http://${server.host}`;
  expect(await refused('http://localhost/s3cret')).toMatchObject({
    code: 'address_refused',
    message: 'attachments.1.url: localhost is not fetched: it is not on the allow list',
    data: { path: 'attachments.1.url', host: 'localhost' },
  });
  expect(await refused(`${own}/inside`)).toMatchObject({ code: 'address_refused' });
  expect(await refused(`${own}/none?s3cret`)).toMatchObject({
    code: 'event_invalid',
    message: 'attachments.1.url: its server answered 404, not 200',
  });
  expect(await refused(`${own}/large`)).toMatchObject({
    code: 'event_too_large',
    data: { path: 'attachments.1' },
  });
  const before = server.requests.length;
  expect(await refused(`${own}/x`, null)).toMatchObject({
    code: 'event_invalid',
    message: expect.stringContaining('fetch: { allow }'),
  });
  const tooMany = Array.from({ length: 17 }, () => ({ url: `${own}/x` }));
  const attempt = fetchAttachments(tooMany, fetch).then(readAttachments);
  await expect(attempt).rejects.toMatchObject({ code: 'event_invalid', data: { path: 'attachments' } });
  expect(server.requests).toHaveLength(before);
  await fetch.close();
});

/** A fetch with the same answer for every address, which records the requested sizes. */
function answering(answer: { status?: number; body?: Buffer }): { fetch: SafeFetch; asked: number[] } {
  const asked: number[] = [];
  const fetch = async (_: string, { maxBytes }: { maxBytes: number }) => {
    asked.push(maxBytes);
    const { status = 200, body = Buffer.from('x') } = answer;
    return { status, headers: {}, body: body.subarray(0, maxBytes), isCut: body.length > maxBytes };
  };
  return { fetch: fetch as unknown as SafeFetch, asked };
}

test('a message reads no more than its limit from all its addresses', async () => {
  const { fetch, asked } = answering({ body: Buffer.alloc(MAX_FILE_BYTES - 1) });
  const given = Array.from({ length: 6 }, (_, index) => ({ url: `https://example.org/${index}` }));
  await expect(fetchAttachments(given, fetch)).rejects.toMatchObject({
    code: 'event_too_large',
    data: { path: 'attachments.4', limit: 4 },
  });
  expect(asked).toEqual([...Array<number>(4).fill(MAX_FILE_BYTES), 4]);
});

test.each([201, 204, 206, 304, 500])('what comes with the status %i is not attached', async (status) => {
  const attempt = fetchAttachments([{ url: 'https://example.org/x' }], answering({ status }).fetch);
  await expect(attempt).rejects.toMatchObject({ code: 'event_invalid', data: { status } });
});

test.each([
  ['/', undefined],
  ['/a/b%20c.txt?d#e', 'b c.txt'],
  ['/100%.txt', '100%.txt'],
  ['/%ff', '%ff'],
  [`/${'n'.repeat(300)}`, 'n'.repeat(255)],
  [`/%${'n'.repeat(300)}`, `%${'n'.repeat(254)}`],
])('the name of a file is the end of its address: %s', async (path, name) => {
  const [attachment] = await fetchAttachments([{ url: `https://example.org${path}` }], answering({}).fetch);
  expect(attachment?.name).toBe(name);
});
