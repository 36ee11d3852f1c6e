import type { MongoClientOptions } from 'mongodb';
import { MongoClient } from 'mongodb';
import type { MongoPlace } from './mongo-error.ts';
import { urlError } from './mongo-error.ts';

/** What correctness rests on; a url cannot change it. */
const FIXED: MongoClientOptions = {
  writeConcern: { w: 'majority', journal: true },
  readPreference: 'primary',
  ignoreUndefined: true,
  // One damaged text must not make its neighbours unreadable.
  enableUtf8Validation: false,
};

/**
 * What a url may say otherwise. Together they bound every wait: for a server, for an answer, for a connection; those
 * that wait for a connection are told at once when answers have stopped.
 * Writes are not retried by the driver: not every server can, and every write here can be looked up or repeated.
 */
const DEFAULTS: MongoClientOptions = {
  appName: 'troupe',
  serverSelectionTimeoutMS: 3_000,
  connectTimeoutMS: 3_000,
  socketTimeoutMS: 5_000,
  waitQueueTimeoutMS: 10_000,
  maxPoolSize: 64,
  maxConnecting: 8,
  maxIdleTimeMS: 120_000,
  retryWrites: false,
};

const DEFAULT_DATABASE = 'troupe';

export function createMongoClient(url: string, options: MongoClientOptions = {}): MongoClient {
  const said = url.includes('?')
    ? url
        .slice(url.indexOf('?') + 1)
        .toLowerCase()
        .split('&')
    : [];
  const isSaid = (name: string) => said.some((each) => each.startsWith(`${name.toLowerCase()}=`));
  const defaults = Object.entries(DEFAULTS).filter(([name]) => !isSaid(name));
  try {
    return new MongoClient(url, { ...Object.fromEntries(defaults), ...FIXED, ...options });
  } catch (error) {
    throw urlError(error);
  }
}

/** The hosts and the database, of which the latter is the option, else the one in the url, else a fixed name. */
export function placeOf(client: MongoClient, url: string, database: string | undefined): MongoPlace {
  const { hosts, srvHost } = client.options;
  const inUrl = /^mongodb(?:\+srv)?:\/\/[^/?]+\/([^?]+)/.exec(url)?.[1];
  return {
    hosts: srvHost ?? hosts.map(String).join(', '),
    database: database ?? (inUrl ? decodeURIComponent(inUrl) : DEFAULT_DATABASE),
  };
}
