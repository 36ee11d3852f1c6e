import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import type { RelayCommand } from './relay-process.ts';

const KEPT_FRAMES = 1_000;

export interface RelayServer {
  /** `ws://127.0.0.1:PORT`. */
  url: string;
  execute: (command: RelayCommand) => Promise<unknown>;
  /** Cuts all connections, and is gone. */
  close: () => Promise<void>;
}

/** The common part of both relays: a WebSocket server that executes the commands of a test. */
export async function openRelayServer(
  port: number,
  parts: {
    connected(client: WebSocket): void;
    frame(client: WebSocket, frame: unknown[], text: string): Promise<void> | void;
    closed(client: WebSocket): void;
    execute?(command: RelayCommand): unknown;
  },
): Promise<RelayServer> {
  const seen: unknown[][] = [];
  let isStalled = false;
  let heldBack: (() => void)[] = [];
  let server = await listen(port);
  const at = (server.address() as AddressInfo).port;

  function listen(where: number): Promise<WebSocketServer> {
    const opened = new WebSocketServer({ host: '127.0.0.1', port: where, autoPong: false });
    opened.on('connection', (client) => {
      client.on('ping', (data) => {
        if (!isStalled) client.pong(data);
      });
      client.on('error', () => {});
      client.on('close', () => parts.closed(client));
      client.on('message', (data) => {
        const text = (data as Buffer).toString();
        const frame = parse(text);
        seen.push(frame);
        if (seen.length > KEPT_FRAMES) seen.shift();
        const answer = () => void parts.frame(client, frame, text);
        if (isStalled) heldBack.push(answer);
        else answer();
      });
      if (!isStalled) parts.connected(client);
    });
    return new Promise((resolve) => opened.on('listening', () => resolve(opened)));
  }

  function drop(): void {
    for (const client of server.clients) client.terminate();
  }

  function close(): Promise<void> {
    drop();
    return new Promise((resolve) => server.close(() => resolve()));
  }

  async function execute(command: RelayCommand): Promise<unknown> {
    switch (command.do) {
      case 'seen':
        return command.kind === undefined ? seen : seen.filter(([kind]) => kind === command.kind);
      case 'clients':
        return server.clients.size;
      case 'drop':
        return drop();
      case 'down':
        return close();
      case 'up':
        server = await listen(at);
        return;
      case 'stall': {
        isStalled = command.stalled;
        const answers = isStalled ? [] : heldBack;
        if (!isStalled) heldBack = [];
        for (const answer of answers) answer();
        return;
      }
      case 'behave':
      case 'push':
        return parts.execute?.(command);
    }
  }

  return { url: `ws://127.0.0.1:${at}`, execute, close };
}

/** In a process of its own: executes the commands of the parent, and ends with it. */
export function serveParent({ url, execute }: RelayServer): void {
  process.on('message', (message: { number: number; command: RelayCommand }) => {
    void execute(message.command).then((answer) =>
      process.send?.({ to: message.number, answer: answer ?? null }),
    );
  });
  process.on('disconnect', () => process.exit(0));
  process.send?.({ url });
}

function parse(text: string): unknown[] {
  try {
    const frame: unknown = JSON.parse(text);
    return Array.isArray(frame) ? (frame as unknown[]) : [];
  } catch {
    return [];
  }
}
