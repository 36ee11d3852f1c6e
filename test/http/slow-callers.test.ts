import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { serveHttp } from '../../src/http/api/index.ts';
import { startApi } from './harness.ts';

test('a caller that sends its headers too slowly is disconnected, and others are answered meanwhile', async () => {
  await using api = await startApi();
  const server = await serveHttp(api.app, {
    port: 0,
    timeouts: { headersTimeout: 1_000, connectionsCheckingInterval: 50 },
  });
  try {
    const slow = connect(server.port, '127.0.0.1');
    await once(slow, 'connect');
    slow.write('GET /api/conversations HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a: ');
    const ended = once(slow, 'close');
    let answer = '';
    slow.on('data', (chunk) => (answer += String(chunk)));
    expect((await fetch(`${server.url}/api/agents`)).status).toBe(200);
    await ended;
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  } finally {
    await server.close();
  }
});

test('connections stay open for longer than load balancers keep them', async () => {
  await using api = await startApi();
  const server = await serveHttp(api.app, { port: 0 });
  try {
    const { headers } = await fetch(`${server.url}/api/agents`);
    expect(headers.get('keep-alive')).toBe('timeout=75');
  } finally {
    await server.close();
  }
});
