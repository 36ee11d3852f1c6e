import { randomUUID } from 'node:crypto';
import { systemClock as clock } from '../../src/base/clock.ts';
import type { Documents } from '../../src/store/documents/documents.ts';
import {
  createMongoClient,
  createMongoDocuments,
  openMongoDriver,
} from '../../src/store/mongo/connect-mongo.ts';
import { stop } from '../support.ts';

/** A separate database on the server of `MONGODB_URL`, dropped at the end, with a count of the commands sent to it. */
export interface BenchDatabase {
  documents: Documents;
  url: string;
  /** Commands since the last call, except those for the listing of conversations, which no turn waits for. */
  takeCommands(): number;
  [Symbol.asyncDispose](): Promise<void>;
}

export function newDatabaseUrl(): { url: string; database: string } {
  const url = new URL(process.env['MONGODB_URL'] ?? 'mongodb://127.0.0.1:27017/?directConnection=true');
  const database = `bench_${randomUUID().slice(0, 8)}`;
  url.pathname = `/${database}`;
  return { url: url.href, database };
}

export async function openBenchDatabase(): Promise<BenchDatabase> {
  const { url, database } = newDatabaseUrl();
  // Creates the collections and indexes.
  await (await openMongoDriver({ url, onWarning: stop })).close();
  const client = createMongoClient(url, { monitorCommands: true });
  let commands = 0;
  client.on('commandStarted', ({ command }) => {
    const collections = Object.values(command as Record<string, unknown>);
    if (!collections.includes('conversations')) commands += 1;
  });
  const documents = createMongoDocuments(client, client.db(database), 'local', {
    place: { hosts: new URL(url).host, database },
    clock,
    keepMs: 3_600_000,
    onWarning: stop,
  });
  return {
    documents,
    url,
    takeCommands() {
      const taken = commands;
      commands = 0;
      return taken;
    },
    async [Symbol.asyncDispose]() {
      await documents.close();
      await dropDatabase(url);
    },
  };
}

export async function dropDatabase(url: string): Promise<void> {
  const client = createMongoClient(url);
  await client.db(new URL(url).pathname.slice(1)).dropDatabase();
  await client.close();
}
