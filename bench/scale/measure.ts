import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Redis } from 'ioredis';
import { BSON, type Document, MongoClient } from 'mongodb';
import { createTroupe, type Troupe, type TroupeOptions } from '../../src/index.ts';
import { ANA, messageText, ONE_AGENT, stop, turnWatcher } from '../support.ts';

/** What one turn, or a conversation before its turns, leaves in one part of the store. */
export interface Amount {
  documents: number;
  bytes: number;
  /** Entries of all indexes. */
  entries: number;
}

export type Amounts = Record<string, Amount>;

export interface Point {
  perConversation: Amounts;
  perTurn: Amounts;
  /** Redis commands of a turn, without the waiting of idle workers. */
  commandsPerTurn: number;
}

const CONVERSATIONS = 10;
/** After the first turn of each. */
const MORE_TURNS = 3;
/** Of workers that wait, and of connections. */
const IDLE = new Set(['bzpopmin', 'info', 'ping', 'client', 'hello', 'select', 'config', 'auth', 'quit']);

/** A short run that counts what it leaves: one agent, one step a turn, a scripted answer. */
async function countRun(
  options: TroupeOptions,
  parts: { amounts: () => Promise<Amounts>; commands: () => number },
): Promise<Point> {
  await using troupe = await createTroupe(ONE_AGENT, { ...options, onWarning: stop });
  const ended = turnWatcher(troupe);
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn += 1)
      for (let each = 0; each < CONVERSATIONS; each += 1) await say(troupe, ended, `c${each}`, each);
  };
  await say(troupe, ended, 'warm-up', 0);
  await troupe.idle();
  const before = await parts.amounts();
  await turns(1);
  await troupe.idle();
  const first = await parts.amounts();
  const commands = parts.commands();
  await turns(MORE_TURNS);
  const commandsPerTurn = (parts.commands() - commands) / (CONVERSATIONS * MORE_TURNS);
  await troupe.idle();
  const perTurn = difference(await parts.amounts(), first, CONVERSATIONS * MORE_TURNS);
  const both = difference(first, before, CONVERSATIONS);
  return { perConversation: difference(both, perTurn, 1), perTurn, commandsPerTurn };
}

/** Waits for the events alone: `idle` asks Redis again and again. */
async function say(troupe: Troupe, ended: Ended, conversation: string, index: number): Promise<void> {
  const done = ended(conversation);
  await troupe.send(conversation, { author: ANA, content: messageText(index) });
  await done;
}

type Ended = ReturnType<typeof turnWatcher>;

function difference(after: Amounts, before: Amounts, by: number): Amounts {
  const none = { documents: 0, bytes: 0, entries: 0 };
  return Object.fromEntries(
    Object.entries(after).map(([name, amount]) => {
      const was = before[name] ?? none;
      const part = (key: keyof Amount) => (amount[key] - was[key]) / by;
      return [name, { documents: part('documents'), bytes: part('bytes'), entries: part('entries') }];
    }),
  );
}

/** Bytes of SQLite are pages, indexes included. */
export async function measureEmbedded(): Promise<Point> {
  const dir = mkdtempSync(join(tmpdir(), 'troupe-scale-'));
  try {
    return await countRun(
      { data: dir },
      { amounts: async () => countTables(join(dir, 'troupe.db')), commands: () => 0 },
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const TABLES = ['logs', 'events', 'pending', 'actors', 'registers', 'passages'];

function countTables(path: string): Amounts {
  const database = new DatabaseSync(path, { readOnly: true });
  const rows = (table: string) =>
    Number(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'] ?? 0);
  const bytes = (table: string) =>
    Number(
      database
        .prepare(
          `SELECT coalesce(sum(payload), 0) AS n FROM dbstat WHERE name = ?1
           OR name IN (SELECT name FROM sqlite_schema WHERE tbl_name = ?1 AND type = 'index')`,
        )
        .get(table)?.['n'] ?? 0,
    );
  const counted = TABLES.map((table) => [table, { documents: rows(table), bytes: bytes(table), entries: 0 }]);
  database.close();
  return Object.fromEntries(counted) as Amounts;
}

/** Bytes of MongoDB are those of documents, before compression and without indexes. */
export async function measureDistributed(urls: { mongodb: string; redis: string }): Promise<Point> {
  const name = `troupe-scale-${randomUUID().slice(0, 8)}`;
  const client = new MongoClient(urls.mongodb);
  const counter = countCommands();
  try {
    const mongodb = urls.mongodb.replace(/^([^/]+\/\/[^/?]+)(?:\/[^?]*)?/, `$1/${name}`);
    return await countRun(
      { mongodb, redis: urls.redis, prefix: name },
      { amounts: () => countCollections(client, name), commands: counter.total },
    );
  } finally {
    counter.end();
    await client.db(name).dropDatabase();
    await client.close();
    await removeKeys(urls.redis, name);
  }
}

async function countCollections(client: MongoClient, name: string): Promise<Amounts> {
  const amounts: Amounts = {};
  const db = client.db(name);
  for (const collection of await db.collections()) {
    if (collection.collectionName === 'meta') continue;
    const indexes = (await collection.indexes()) as { key: Document; sparse?: boolean }[];
    for (const document of await collection.find().toArray()) {
      const namespace = document['namespace'] === undefined ? '' : ` (${String(document['namespace'])})`;
      const amount = (amounts[`${collection.collectionName}${namespace}`] ??= {
        documents: 0,
        bytes: 0,
        entries: 0,
      });
      amount.documents += 1;
      amount.bytes += BSON.calculateObjectSize(document);
      for (const index of indexes) amount.entries += entriesOf(document, index);
    }
  }
  return amounts;
}

/** A list has an entry for each of its members; a sparse index has none for a document without its fields. */
function entriesOf(document: Document, { key, sparse }: { key: Document; sparse?: boolean }): number {
  const values = Object.keys(key).map((field) =>
    field.split('.').reduce<unknown>((at, name) => (at as Document | undefined)?.[name], document),
  );
  if (sparse && values.every((value) => value === undefined)) return 0;
  return Math.max(1, ...values.map((value) => (Array.isArray(value) ? value.length : 1)));
}

/** Counts in this process: other tests may use the same server. A script is one command. */
function countCommands() {
  const original = Reflect.get(Redis.prototype, 'sendCommand') as (
    this: Redis,
    ...args: Parameters<Redis['sendCommand']>
  ) => Promise<unknown>;
  let count = 0;
  Redis.prototype.sendCommand = function sendCounted(this: Redis, ...args) {
    if (!IDLE.has(args[0].name.toLowerCase())) count += 1;
    return original.apply(this, args);
  };
  return {
    total: () => count,
    end() {
      Redis.prototype.sendCommand = original;
    },
  };
}

async function removeKeys(url: string, name: string): Promise<void> {
  const redis = new Redis(url);
  const keys = await redis.keys(`*${name}*`);
  if (keys.length > 0) await redis.del(keys);
  await redis.quit();
}
