import { setTimeout as sleep } from 'node:timers/promises';
import { NostrRelay } from '@nostr-relay/core';
import { LogLevel } from '@nostr-relay/common';
import { EventRepositorySqlite } from '@nostr-relay/event-repository-sqlite';
import { Validator } from '@nostr-relay/validator';
import type { WebSocket } from 'ws';
import { type RelayOptions, type TestRelay, testRelay } from './relay-process.ts';
import { openRelayServer, type RelayServer } from './relay-server.ts';

/** A real relay (@nostr-relay over SQLite in memory) in this process: most tests need no other. */
export async function startRelay(options: RelayOptions = {}): Promise<TestRelay> {
  const { url, execute, close } = await openRelay(options);
  // Each has its own copy, as over a channel between processes.
  const ask: TestRelay['ask'] = async (command) => structuredClone((await execute(command)) ?? null);
  return testRelay({ url, ask, close });
}

export async function openRelay(options: RelayOptions): Promise<RelayServer> {
  const repository = new EventRepositorySqlite(':memory:');
  await repository.init();
  const relay = new NostrRelay(repository, {
    // Without a cache, an answer has the events of this moment.
    filterResultCacheTtl: 0,
    logLevel: LogLevel.ERROR,
    ...(options.auth && { hostname: '127.0.0.1' }),
  });
  const validator = new Validator();

  return openRelayServer(options.port ?? 0, {
    connected: (client) => relay.handleConnection(client),
    closed: (client) => relay.handleDisconnect(client),
    async frame(client, [kind, second], text) {
      if (options.latencyMs !== undefined) await sleep(options.latencyMs);
      const refusal = options.auth && !relay.isAuthorized(client) ? refusalOf(kind, second) : null;
      if (refusal) return client.send(JSON.stringify(refusal));
      await answer(relay, validator, client, text);
    },
  });
}

async function answer(
  relay: NostrRelay,
  validator: Validator,
  client: WebSocket,
  text: string,
): Promise<void> {
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
