import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface TokenRequest {
  form: Record<string, string>;
  authorization: string | undefined;
}

export interface FakeIssuer extends AsyncDisposable {
  url: string;
  /** What was asked of the token address, in order. */
  requests: TokenRequest[];
  /** Paths of all requests. */
  paths: string[];
  /** The token that was given out last. */
  isCurrent(authorization: string | undefined): boolean;
  /** Ends the life of all tokens. */
  expire(): void;
}

interface IssuerManner {
  /** Refuses every client with this answer. */
  refuses?: { error: string; error_description: string };
  /** Written into the metadata instead of its own. */
  tokenEndpoint?: string;
  /** Where its metadata redirect to. */
  redirectsTo?: string;
  /** Sends metadata without end. */
  isEndless?: boolean;
}

/** An OAuth authorization server on 127.0.0.1 that gives tokens to clients. It checks nothing: tests do. */
export async function startFakeIssuer(
  manner: IssuerManner = {},
  onRequest: (headers: IncomingHttpHeaders) => void = () => undefined,
): Promise<FakeIssuer> {
  const requests: TokenRequest[] = [];
  const paths: string[] = [];
  let current: string | null = null;
  let given = 0;
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    paths.push(path);
    onRequest(request.headers);
    const send = (status: number, body: unknown) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (path === '/.well-known/oauth-authorization-server') {
      if (manner.redirectsTo !== undefined)
        return void response.writeHead(302, { location: manner.redirectsTo }).end();
      if (manner.isEndless) return pour(response);
      return send(200, {
        issuer: url,
        token_endpoint: manner.tokenEndpoint ?? `${url}/token`,
        authorization_endpoint: `${url}/authorize`,
        response_types_supported: ['code'],
        token_endpoint_auth_methods_supported: ['client_secret_basic', 'private_key_jwt'],
      });
    }
    if (path !== '/token') return send(404, {});
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      const { authorization } = request.headers;
      requests.push({ form: Object.fromEntries(new URLSearchParams(body)), authorization });
      if (manner.refuses) return send(400, manner.refuses);
      given += 1;
      current = `token-${given}`;
      send(200, { access_token: current, token_type: 'Bearer', expires_in: 3_600 });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    requests,
    paths,
    isCurrent: (authorization) => current !== null && authorization === `Bearer ${current}`,
    expire: () => (current = null),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const CHUNK = Buffer.alloc(65_536, ' ');

function pour(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  const more = () => {
    while (!response.destroyed && response.write(CHUNK));
  };
  response.on('drain', more);
  more();
}
