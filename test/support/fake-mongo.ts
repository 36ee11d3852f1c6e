import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { BSON } from 'mongodb';

type Doc = Record<string, unknown>;

/** A server that speaks MongoDB's wire protocol and answers commands as `answer` says; null: no such command. */
export async function startFakeMongo(
  answer: (command: string, body: Doc) => Doc | null,
): Promise<{ url: string; commands: string[] } & AsyncDisposable> {
  const commands: string[] = [];
  const sockets = new Set<Socket>();
  const reply = (body: Doc): Doc => {
    const [command = ''] = Object.keys(body);
    commands.push(command);
    if (['hello', 'ismaster', 'isMaster'].includes(command)) return { ...HELLO };
    const given = answer(command, body);
    return given ?? { ok: 0, code: 59, codeName: 'CommandNotFound', errmsg: `no such command: ${command}` };
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    let rest = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 4 && rest.length >= rest.readInt32LE(0)) {
        const message = rest.subarray(0, rest.readInt32LE(0));
        rest = rest.subarray(message.length);
        socket.write(answerTo(message, reply));
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `mongodb://127.0.0.1:${(server.address() as AddressInfo).port}`,
    commands,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

const HELLO = {
  ok: 1,
  isWritablePrimary: true,
  ismaster: true,
  helloOk: true,
  minWireVersion: 0,
  maxWireVersion: 21,
};
const [OP_REPLY, OP_QUERY, OP_MSG] = [1, 2004, 2013];

function answerTo(message: Buffer, reply: (body: Doc) => Doc): Buffer {
  const isQuery = message.readInt32LE(12) === OP_QUERY;
  // OP_QUERY: flags, the name of a collection, two numbers. OP_MSG: flags and the kind of the section.
  const at = isQuery ? message.indexOf(0, 20) + 9 : 21;
  const length = message.readInt32LE(at);
  const body = reply(BSON.deserialize(message.subarray(at, at + length)));
  const document = Buffer.from(BSON.serialize(body));
  const head = Buffer.alloc(isQuery ? 36 : 21);
  head.writeInt32LE(head.length + document.length, 0);
  head.writeInt32LE(message.readInt32LE(4), 8);
  head.writeInt32LE(isQuery ? OP_REPLY : OP_MSG, 12);
  if (isQuery) head.writeInt32LE(1, 32);
  return Buffer.concat([head, document]);
}
