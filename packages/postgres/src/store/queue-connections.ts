import pg from 'pg';
import type { TroupeError } from '../troupe.ts';
import { targetOf } from './connect-postgres.ts';
import { type Database, openDatabase, TYPES } from './database.ts';
import { postgresError } from './postgres-error.ts';

const CONNECTIONS = 4;
const IDLE_MS = 120_000;
/** A process that stands still within a transaction holds up the others no longer than this. */
const TRANSACTION_MS = 1_000;
const MARGIN_MS = 2_000;

/**
 * What the queue holds may be lost, so its writes do not wait for the disk. Every statement of it has an index, and its
 * tables grow from nothing within moments, faster than statistics follow: so plans that read the whole table are excluded.
 */
const settings = (statementMs: number) => `
  SELECT set_config('statement_timeout', '${statementMs}', false),
    set_config('idle_in_transaction_session_timeout', '${TRANSACTION_MS}', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('jit', 'off', false), set_config('enable_seqscan', 'off', false),
    set_config('synchronous_commit', 'off', false)`;

export interface QueueConnections {
  database: Database & { schema: string };
  /** A connection of its own, to listen on. */
  connectListener: () => pg.Client;
  /** What an error of the driver means to the operator. */
  errorOf: (thrown: unknown) => TroupeError;
}

/** Connections for wakes, notices and admission, beside those of a store that is open. Throws `config_invalid`. */
export function openQueueConnections(url: string): QueueConnections {
  const { config, place, statementMs } = targetOf(url);
  const database = openDatabase({
    ...config,
    max: CONNECTIONS,
    connectionTimeoutMillis: statementMs + MARGIN_MS,
    idleTimeoutMillis: IDLE_MS,
    verify: (client, done) => client.query(settings(statementMs), (error) => done(error)),
  });
  return {
    database: { ...database, schema: place.schema },
    connectListener: () => new pg.Client({ ...config, types: TYPES }),
    errorOf: (thrown) => postgresError(thrown, place),
  };
}
