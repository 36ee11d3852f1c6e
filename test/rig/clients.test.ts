import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type Clients, createClients } from '../../rig/clients.ts';
import { randomOf } from '../support/engine-random.ts';

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function clientsOf(apis: string[]): Clients {
  return createClients({ random: randomOf(5), conversations: 3, apis: () => apis, token: 'rig' });
}

/** An API that stores and acknowledges; `answer` may replace every response. */
function storing(answer: (status: number, seq: number) => [status: number, body: unknown] | 'reset'): {
  listener: RequestListener;
  stored: string[];
} {
  const stored: string[] = [];
  const listener: RequestListener = (request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { id } = JSON.parse(Buffer.concat(chunks).toString()) as { id: string };
      const known = stored.indexOf(id);
      if (known < 0) stored.push(id);
      const reply = answer(known < 0 ? 201 : 200, stored.indexOf(id) + 1);
      if (reply === 'reset') return request.socket.resetAndDestroy();
      response.writeHead(reply[0], { 'content-type': 'application/json' });
      response.end(JSON.stringify(reply[1]));
    })();
  };
  return { listener, stored };
}

test('a message is repeated under its id until it is acknowledged, whatever the APIs do meanwhile', async () => {
  let trouble = 12;
  const { listener, stored } = storing((status, seq) => {
    if (trouble-- > 0) return trouble % 2 === 0 ? 'reset' : [503, { error: { code: 'store_unavailable' } }];
    return [status, { event: { seq } }];
  });
  const clients = clientsOf([await serve(listener), await serve(listener)]);
  while (clients.posts.length < 5) clients.burst();
  await expect.poll(() => clients.open()).toBe(0);
  expect(clients.posts.every(({ id, acked }) => acked?.seq === stored.indexOf(id) + 1)).toBe(true);
  expect(clients.posts.reduce((sum, { tries }) => sum + tries, 0)).toBeGreaterThanOrEqual(
    clients.posts.length + 12,
  );
  expect(clients.misanswers).toEqual([]);
});

test('a separate conversation has one message to one agent, and a unique id', async () => {
  const { listener, stored } = storing((status, seq) => [status, { event: { seq } }]);
  const clients = clientsOf([await serve(listener)]);
  clients.burst();
  const begun = [clients.begin(), clients.begin()];
  expect(begun.map(({ id }) => id)).toEqual(['k1-m0', 'k2-m0']);
  expect(begun.every(({ to }) => to.length === 1)).toBe(true);
  await expect.poll(() => clients.open()).toBe(0);
  expect(begun.map(({ acked }) => acked?.seq)).toEqual(begun.map(({ id }) => stored.indexOf(id) + 1));
});

test('an answer that no outage explains is recorded', async () => {
  const refusing = storing(() => [409, { error: { code: 'event_conflict' } }]);
  const clients = clientsOf([await serve(refusing.listener)]);
  clients.burst();
  await expect.poll(() => clients.open()).toBe(0);
  expect(clients.posts.every(({ acked }) => acked === null)).toBe(true);
  expect(clients.misanswers[0]).toMatchObject({ what: 'post k0-m0', status: 409 });
});

test('a stop names the running turn, and counts only when acknowledged', async () => {
  const asked: string[] = [];
  let status = 503;
  const api = await serve((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(request.method === 'GET' ? 200 : status);
    response.end(JSON.stringify({ actors: [{ agent: 'bo', turn: 'k0:bo:1' }] }));
  });
  const clients = clientsOf([api]);
  clients.cancel('k0', 'bo');
  await expect.poll(() => asked).toEqual(['GET /api/conversations/k0/actors', 'POST /api/commands']);
  expect(clients.cancelled).toEqual([]);
  status = 202;
  clients.cancel('k0', 'bo');
  await expect.poll(() => clients.cancelled).toEqual(['k0:bo:1']);
  clients.cancel('k0', 'ada');
  await expect.poll(() => asked).toHaveLength(5);
  expect(clients.misanswers).toEqual([]);
});
