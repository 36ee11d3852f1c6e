import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { BSON } from 'mongodb';
import { onTestFinished } from 'vitest';

const OP_MSG = 2013;
const OP_QUERY = 2004;
const OP_REPLY = 1;
const HEADER = 16;

/** A server for one test that answers `hello` with the given document, or never answers. Returns its port. */
export async function fakeMongod(hello: Record<string, unknown> | null): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes: Buffer) => {
      if (hello) socket.write(replyTo(bytes, { ok: 1, minWireVersion: 0, ...hello }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

/** In the format of the request: the first one of a connection has the old format. */
function replyTo(question: Buffer, document: Record<string, unknown>): Buffer {
  const isOld = question.readInt32LE(12) === OP_QUERY;
  const body = BSON.serialize(document);
  const fields = Buffer.alloc(isOld ? 20 : 5);
  // Old format: flags, cursor, start, one document. New format: flags, and the kind of the only section.
  if (isOld) fields.writeInt32LE(1, 16);
  const header = Buffer.alloc(HEADER);
  header.writeInt32LE(HEADER + fields.length + body.length, 0);
  header.writeInt32LE(question.readInt32LE(4), 8);
  header.writeInt32LE(isOld ? OP_REPLY : OP_MSG, 12);
  return Buffer.concat([header, fields, body]);
}
