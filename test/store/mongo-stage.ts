import { randomUUID } from 'node:crypto';
import type { Db } from 'mongodb';
import { MongoClient } from 'mongodb';
import { onTestFinished } from 'vitest';
import type { DocumentDriver } from '../../src/store/documents/document-driver.ts';
import { type MongoDriverOptions, openMongoDriver } from '../../src/store/mongo/connect-mongo.ts';
import { patient } from '../support/mode.ts';

export const MONGODB_URL = process.env['MONGODB_URL'] ?? '';

/** Part of the names of suites that are skipped without a server. */
export const MONGO = MONGODB_URL ? 'mongo' : 'mongo (skipped: no MongoDB)';

export interface MongoStage {
  /** A direct connection, to read and change documents beside the store. */
  db: Db;
  open(options?: Partial<MongoDriverOptions>): Promise<DocumentDriver>;
}

/** A database for one test, dropped after it. */
export function mongoStage(): MongoStage {
  const stage = newStage();
  onTestFinished(() => stage.drop());
  return stage;
}

/** A driver of a new database, which is dropped when the driver is closed. */
export async function openMongoOnce(): Promise<DocumentDriver> {
  const stage = newStage();
  const driver = await stage.open();
  let closed: Promise<void> | undefined;
  return { ...driver, close: () => (closed ??= driver.close().then(() => stage.drop())) };
}

function newStage() {
  const database = `troupe-test-${randomUUID().slice(0, 13)}`;
  const client = new MongoClient(MONGODB_URL);
  const db = client.db(database);
  const drivers: DocumentDriver[] = [];
  return {
    db,
    async open(options: Partial<MongoDriverOptions> = {}): Promise<DocumentDriver> {
      const driver = await openMongoDriver({ url: patient(MONGODB_URL), database, ...options });
      drivers.push(driver);
      return driver;
    },
    async drop() {
      await Promise.all(drivers.map((driver) => driver.close()));
      await db.dropDatabase();
      await client.close();
    },
  };
}

/** Clients of a set of servers know all of them, so no proxy is between. */
export const IS_SET = MONGODB_URL.includes('replicaSet=');

/** A proxy to the server, whose connections can be reset or blocked. */
export function throughProxy(url: string, port: number): string {
  return url.replace(/(?<=^mongodb:\/\/(?:[^@/]*@)?)[^/?]+/, `127.0.0.1:${port}`);
}
