import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { expect, test } from 'vitest';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { untilHolds } from '../support/until-holds.ts';
import { startGuarded, withKey } from './access.ts';
import { ANA } from './harness.ts';

const LOOK_MS = 2_500;
const FOLLOW = '/api/events?conversation=c1&after=0';

/** A stream that nobody reads, with far more data than a connection buffers. */
async function unread(server: Server, authorization: string): Promise<Socket> {
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.pause();
  await once(socket, 'connect');
  socket.write(`GET ${FOLLOW} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n\r\n`);
  return socket;
}

/** Waits until the connection is full. Several checks in a row, since it buffers a few megabytes. */
async function untilStuck(responses: readonly ServerResponse[]): Promise<void> {
  let [seen, looks] = [-1, 0];
  await untilHolds(() => {
    const [response] = responses;
    const sent = response?.writableNeedDrain ? (response.socket?.bytesWritten ?? -1) : -1;
    looks = sent > 0 && sent === seen ? looks + 1 : 0;
    seen = sent;
    expect(looks).toBeGreaterThan(5);
  });
}

function connections(server: Server): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

test.each(['the key is revoked', 'the process is about to end'])(
  'an unread stream ends and frees its place when %s',
  async (why) => {
    const clock = createFakeClock();
    const ending = new AbortController();
    await using api = await startGuarded({ clock, signal: ending.signal, traffic: { allStreams: 1 } });
    const [held, other] = [await withKey(api), await withKey(api)];
    for (let n = 0; n < 24; n++)
      await api.troupe.send('c1', { author: ANA, to: [], content: 'x'.repeat(900_000) });
    const server = createAdaptorServer({ fetch: api.app.fetch }) as Server;
    const responses: ServerResponse[] = [];
    server.on('request', (_, response) => responses.push(response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = await unread(server, held.headers.authorization);
    try {
      await untilStuck(responses);
      expect((await other.get(FOLLOW)).status).toBe(429);
      if (why === 'the key is revoked') await api.troupe.keys.revoke(held.id);
      else ending.abort();
      await untilHolds(async () => {
        await clock.advance(LOOK_MS);
        expect(await connections(server)).toBe(0);
      });
      const answered = await api.app.request(FOLLOW, { headers: other.headers });
      expect(answered.status).toBe(200);
      await answered.body?.cancel();
    } finally {
      socket.destroy();
      server.close();
    }
  },
);
