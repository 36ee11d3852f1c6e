import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A model server in a separate process. Every answer is one endless line of server-sent events. */
const PIECE = Buffer.alloc(64 * 1024, 'a');

const server = createServer((request, response) => {
  request.resume();
  response.on('error', () => {});
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write('data: {"choices":[{"delta":{"content":"');
  const more = () => {
    while (!response.destroyed && response.write(PIECE));
  };
  response.on('drain', more);
  more();
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
process.on('disconnect', () => process.exit(0));
