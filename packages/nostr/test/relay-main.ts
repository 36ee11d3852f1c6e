import { setTimeout as sleep } from 'node:timers/promises';
import { NostrRelay } from '@nostr-relay/core';
import { LogLevel } from '@nostr-relay/common';
import { EventRepositorySqlite } from '@nostr-relay/event-repository-sqlite';
import { Validator } from '@nostr-relay/validator';
import type { WebSocket } from 'ws';
import { openRelayServer } from './relay-server.ts';
import type { RelayOptions } from './relay-process.ts';

/** The process of `startRelay`. */
const options = JSON.parse(process.argv[2] ?? '{}') as RelayOptions;
const repository = new EventRepositorySqlite(':memory:');
await repository.init();
const relay = new NostrRelay(repository, {
  // Without a cache, an answer has the events of this moment.
  filterResultCacheTtl: 0,
  logLevel: LogLevel.ERROR,
  ...(options.auth && { hostname: '127.0.0.1' }),
});
const validator = new Validator();

await openRelayServer(options.port ?? 0, {
  connected: (client) => relay.handleConnection(client),
  closed: (client) => relay.handleDisconnect(client),
  async frame(client, [kind, second], text) {
    if (options.latencyMs !== undefined) await sleep(options.latencyMs);
    const refusal = options.auth && !relay.isAuthorized(client) ? refusalOf(kind, second) : null;
    if (refusal) return client.send(JSON.stringify(refusal));
    await answer(client, text);
  },
});

async function answer(client: WebSocket, text: string): Promise<void> {
  try {
    await relay.handleMessage(client, await validator.validateIncomingMessage(text));
  } catch (error) {
    client.send(JSON.stringify(['NOTICE', error instanceof Error ? error.message : String(error)]));
  }
}

function refusalOf(kind: unknown, second: unknown): unknown[] | null {
  const reason = 'auth-required: who are you?';
  if (kind === 'REQ') return ['CLOSED', second, reason];
  if (kind === 'EVENT') return ['OK', (second as { id?: string }).id, false, reason];
  return null;
}
