import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { serveHttp } from '../../src/http/api/index.ts';
import { GrowingBuffer } from '../../src/http/read-json.ts';
import { ANA, startApi } from './harness.ts';

const HEAD =
  'POST /api/conversations/c1/events HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n' +
  'transfer-encoding: chunked\r\nconnection: close\r\n\r\n';

function chunked(text: string, size: number): string {
  const pieces = text.match(new RegExp(`.{1,${size}}`, 'gs')) ?? [];
  return pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('');
}

/** Sends over a separate socket and returns the status. */
async function answered(port: number, sent: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let answer = '';
  socket.on('data', (bytes) => (answer += String(bytes)));
  // A caller that is refused halfway may find the connection closed while it still sends.
  socket.on('error', () => {});
  const closed = once(socket, 'close');
  socket.write(HEAD + sent);
  await closed;
  return answer;
}

test('a body in chunks of one byte is refused early, and one in small chunks is accepted', async () => {
  await using api = await startApi();
  const server = await serveHttp(api.app, { port: 0 });
  try {
    const body = (length: number) => JSON.stringify({ author: ANA, to: [], content: 'x'.repeat(length) });
    // The body has no end: it is refused before that.
    const crumbs = await answered(server.port, chunked(body(2_000), 1));
    expect(crumbs).toMatch(/^HTTP\/1\.1 413 /);
    expect(crumbs).toContain('too many tiny chunks');
    expect((await api.troupe.conversations()).length).toBe(0);
    const few = await answered(server.port, `${chunked(body(500), 1)}0\r\n\r\n`);
    expect(few).toMatch(/^HTTP\/1\.1 201 /);
    const small = await answered(server.port, `${chunked(body(200_000), 100)}0\r\n\r\n`);
    expect(small).toMatch(/^HTTP\/1\.1 201 /);
  } finally {
    await server.close();
  }
});

test('pieces are collected in order in one buffer, and not as a list', () => {
  const buffer = new GrowingBuffer();
  const wanted: number[] = [];
  for (let n = 0; n < 3_000; n++) {
    const piece = Uint8Array.from({ length: n % 7 }, (_, at) => (n + at) % 256);
    buffer.append(piece);
    wanted.push(...piece);
    // The sender may overwrite its buffer.
    piece.fill(0);
  }
  expect(buffer.bytes()).toEqual(Uint8Array.from(wanted));
  expect(buffer.isCrumbled()).toBe(true);
});
