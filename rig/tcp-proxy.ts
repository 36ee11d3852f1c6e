import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A proxy between processes and a server: breaks connections without touching either. */
export interface TcpProxy {
  port: number;
  /** Resets every connection on both sides and returns their number. New ones are accepted as before. */
  resetAll(): number;
  close(): Promise<void>;
}

export async function startTcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();

  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ ...target, noDelay: true });
    const pair = [client, upstream] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, [upstream, client] as const]) {
      from.pipe(to);
      // A broken side breaks the other; the close already says what the error would.
      from.on('error', () => to.resetAndDestroy());
      from.on('close', () => {
        pairs.delete(pair);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  function resetAll(): number {
    const open = [...pairs];
    for (const pair of open) for (const socket of pair) socket.resetAndDestroy();
    return open.length;
  }

  return {
    port: (server.address() as AddressInfo).port,
    resetAll,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      resetAll();
      await closed;
    },
  };
}
