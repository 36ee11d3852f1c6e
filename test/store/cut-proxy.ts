import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';

/** A TCP proxy for one test, whose connections can be reset or blocked. */
export async function cutProxy(target: { host: string; port: number }) {
  const sockets = new Set<Socket>();
  let isHeld = false;

  function add(socket: Socket): Socket {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    return socket;
  }

  const server = createServer((incoming) => {
    const inner = add(incoming);
    const outer = add(connect(target));
    inner.on('data', (bytes: Buffer) => void (isHeld || outer.write(bytes)));
    outer.on('data', (bytes: Buffer) => void (isHeld || inner.write(bytes)));
    inner.on('close', () => outer.destroy());
    outer.on('close', () => inner.destroy());
  });
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  async function listen(port: number): Promise<void> {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  }
  async function refuse(): Promise<void> {
    const closed = once(server, 'close');
    server.close();
    cut();
    await closed;
  }
  await listen(0);
  const { port } = server.address() as AddressInfo;
  onTestFinished(() => {
    server.close();
    cut();
  });
  return {
    port,
    cut,
    hold: () => void (isHeld = true),
    release: () => void (isHeld = false),
    /** Refuses connections until `accept`. */
    refuse,
    accept: () => listen(port),
  };
}

/** The first host of a MongoDB url. */
export function hostOf(url: string): { host: string; port: number } {
  const [, host = '127.0.0.1', port = '27017'] =
    /^mongodb:\/\/(?:[^@/]*@)?([^:/?,]+)(?::(\d+))?/.exec(url) ?? [];
  return { host, port: Number(port) };
}
