import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createAdaptorServer, getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { TroupeError } from '../../base/errors.ts';

/** A server that listens. */
export interface HttpServer {
  /** Its URL, without a trailing slash; `https:` where it has a certificate. */
  url: string;
  /** Port that it listens on, even if any port was asked for. */
  port: number;
  /** Accepts no more connections, gives open requests a moment to finish, then closes all connections. */
  close(): Promise<void>;
}

const TIMEOUTS = {
  // Limits for clients that send headers or bodies too slowly. They do not affect event streams, where the server sends, nor
  // imports, whose data arrives without pauses.
  headersTimeout: 10_000,
  requestTimeout: 300_000,
  connectionsCheckingInterval: 2_000,
  // Longer than load balancers keep idle connections (60 s). If the server closed first, a request might already be on its way
  // and fail. With Node's default of 5 s this happened whenever the server was busy for that long.
  keepAliveTimeout: 75_000,
};
/** Connections of one process; more are closed at once. */
const MAX_CONNECTIONS = 10_000;

const PORTS_TRIED = 20;
const CLOSE_GRACE_MS = 1_000;

interface ListenOptions {
  /** Address to listen on. Default `127.0.0.1`. */
  host?: string;
  /** Port to listen on; 0 takes any free one. */
  port: number;
  /** Number of ports tried, from `port` on. */
  tries?: number;
  /** Replaces the default timeouts. */
  timeouts?: Partial<typeof TIMEOUTS>;
  /** With it, the server speaks HTTP/2 and HTTP/1.1 over TLS; without it, HTTP/1.1 in the clear. */
  tls?: Tls | undefined;
}

/** A certificate and its key, in PEM. */
export interface Tls {
  /** The certificate, followed by those that lead to its authority. */
  cert: string;
  /** Its private key. */
  key: string;
}

/** Listens on `port`, or on the next free port after it; 0 takes any. Throws `config_invalid`. */
export async function serveHttp(
  app: Pick<Hono, 'fetch'>,
  { host = '127.0.0.1', port, tries = PORTS_TRIED, timeouts = {}, tls }: ListenOptions,
): Promise<HttpServer> {
  const last = port === 0 ? 0 : Math.min(port + tries - 1, 65_535);
  for (let candidate = port; candidate <= last; candidate++) {
    const server = await listen(createServer(app, { ...TIMEOUTS, ...timeouts }, tls), host, candidate);
    if (server) return httpServer(server, host, tls ? 'https' : 'http');
  }
  const which = tries === 1 ? `port ${port} of ${host} is` : `ports ${port} to ${last} of ${host} are all`;
  const message = `${which} in use; choose another`;
  throw new TroupeError('config_invalid', message, { host, port, last });
}

/** Throws `config_invalid` for a certificate or key that is none, and for a key of another certificate. */
function createServer(app: Pick<Hono, 'fetch'>, timeouts: typeof TIMEOUTS, tls: Tls | undefined): Server {
  if (!tls) return createAdaptorServer({ fetch: app.fetch, serverOptions: timeouts }) as Server;
  try {
    const server = createAdaptorServer({
      fetch: app.fetch,
      createServer: createSecureServer,
      serverOptions: { ...timeouts, ...tls, allowHTTP1: true },
    }) as Server;
    return limitHttp2(server, timeouts);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `the certificate and its key cannot be used: ${reason}`;
    throw new TroupeError('config_invalid', message, {}, { cause });
  }
}

/** Node's timeouts of requests hold for HTTP/1.1 alone. */
function limitHttp2(
  server: Server,
  { requestTimeout, keepAliveTimeout }: Pick<typeof TIMEOUTS, 'requestTimeout' | 'keepAliveTimeout'>,
): Server {
  // `close` lets streams that are open end.
  server.on('session', (session: ServerHttp2Session) =>
    session.setTimeout(keepAliveTimeout, () => session.close()),
  );
  server.on('request', (request: IncomingMessage | Http2ServerRequest) => {
    if (!('stream' in request) || request.readableEnded) return;
    const timer = setTimeout(() => request.complete || request.stream.close(), requestTimeout);
    request.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
  });
  return server;
}

/** Null if the port is taken. */
async function listen(server: Server, host: string, port: number): Promise<Server | null> {
  server.maxConnections = MAX_CONNECTIONS;
  try {
    server.listen(port, host);
    await once(server, 'listening');
    return server;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EADDRINUSE') return null;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `cannot listen on ${host} port ${port}: ${reason}`;
    throw new TroupeError('config_invalid', message, { host, port }, { cause });
  }
}

function httpServer(server: Server, host: string, scheme: 'http' | 'https'): HttpServer {
  const { port } = server.address() as AddressInfo;
  const name = host.includes(':') ? `[${host}]` : host;
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  return {
    url: `${scheme}://${name}:${port}`,
    port,
    async close() {
      const closed = once(server, 'close');
      // Ends idle connections too.
      server.close();
      const timer = setTimeout(() => {
        for (const socket of connections) socket.destroy();
      }, CLOSE_GRACE_MS);
      await closed;
      clearTimeout(timer);
    },
  };
}

/**
 * The app as a listener of `node:http`: for Express, or for Fastify's raw requests. If a parser has already read the body, its
 * result is taken from the request's `body`, where `express.json()` leaves it.
 */
export function nodeListener(app: Hono): (request: IncomingMessage, response: ServerResponse) => void {
  // The surrounding program's globals must not be replaced.
  const listen = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  return function answerRequest(request, response) {
    restoreBody(request);
    void listen(request, response);
  };
}

/** Passes a body that was already read on as `rawBody`, where the listener looks for it. */
function restoreBody(request: IncomingMessage & { body?: unknown; rawBody?: unknown }): void {
  const { body } = request;
  if (!request.readableDidRead || body === undefined || request.rawBody instanceof Buffer) return;
  const isText = typeof body === 'string' || body instanceof Uint8Array;
  request.rawBody = Buffer.from(isText ? body : JSON.stringify(body));
}
