import { TroupeError } from '../../base/errors.ts';
import { type Database, rollback } from './database.ts';
import { MARKS, type TermCondition } from '../passages.ts';

/** 'TRUP'. Marks the file as one of Troupe, so that a database of another program is refused. */
const APPLICATION_ID = 0x54525550;

const TERMS_TABLE = `CREATE VIRTUAL TABLE terms USING fts5(
    text, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '/${MARKS}'"
  )`;

/**
 * Two choices keep rows small and the file dense. `logs` holds the id of a conversation once; other tables use its
 * number. `events` and `registers`, the table of entries, are rowid tables, which fill their pages in order: a WITHOUT
 * ROWID table would use an overflow page of 4 kB for every row above 1 kB.
 * `pending` has, per agent, the last event that addresses it, until a sweep finds that event processed. So a sweep reads
 * only the present work and what was processed since the last sweep, not the logs.
 * `lastSeq` and `lastAt` of a log are those of its last event, so that listing logs reads no events.
 * `standingSeq` and the columns after it are the standing of a log (see `standings.ts`); without one they have their
 * defaults. `agents` has the form ',a,b,', so that a search for ',a,' finds one agent.
 * `passages` and `terms` are the index of words, see `passages.ts`.
 * `registers_by_age` covers the namespaces that expire regularly: `journal` and `effect`.
 */
const TABLES = `
  CREATE TABLE logs (
    num INTEGER PRIMARY KEY, tenant TEXT NOT NULL, conversation TEXT NOT NULL,
    lastSeq INTEGER NOT NULL DEFAULT 0, lastAt INTEGER NOT NULL DEFAULT 0, standingSeq INTEGER NOT NULL DEFAULT 0,
    rank INTEGER NOT NULL DEFAULT 0, since INTEGER NOT NULL DEFAULT 0, cost INTEGER NOT NULL DEFAULT 0,
    owner TEXT NOT NULL DEFAULT '', agents TEXT NOT NULL DEFAULT '', words TEXT NOT NULL DEFAULT '', standing ANY,
    spent INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, conversation)
  ) STRICT;
  CREATE INDEX logs_by_time ON logs (tenant, lastAt, conversation, lastSeq) WHERE lastSeq > 0;
  CREATE INDEX logs_by_rank ON logs (tenant, rank, since, conversation) WHERE standingSeq > 0;
  CREATE INDEX logs_by_since ON logs (tenant, since, conversation) WHERE standingSeq > 0;
  CREATE INDEX logs_by_cost ON logs (tenant, cost, conversation) WHERE standingSeq > 0;
  CREATE INDEX logs_by_spent ON logs (tenant, spent, conversation) WHERE standingSeq > 0;
  CREATE INDEX logs_behind ON logs (tenant, lastAt, conversation) WHERE lastSeq > standingSeq;
  CREATE TABLE events (
    num INTEGER PRIMARY KEY, log INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL,
    kind TEXT NOT NULL, recipients TEXT NOT NULL, hash TEXT NOT NULL, tokens INTEGER NOT NULL, turn TEXT,
    data ANY NOT NULL, chain TEXT,
    UNIQUE (log, seq), UNIQUE (log, id)
  ) STRICT;
  CREATE TABLE pending (
    log INTEGER NOT NULL, agent TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (log, agent)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE actors (
    num INTEGER PRIMARY KEY, log INTEGER NOT NULL, agent TEXT NOT NULL, fence INTEGER NOT NULL, owner TEXT NOT NULL,
    until INTEGER NOT NULL, processed INTEGER NOT NULL, turn TEXT, abort TEXT, parked TEXT,
    data ANY NOT NULL, wakeAt INTEGER,
    UNIQUE (log, agent)
  ) STRICT;
  CREATE INDEX actors_unfinished ON actors (num) WHERE turn IS NOT NULL;
  CREATE INDEX actors_timed ON actors (wakeAt) WHERE wakeAt IS NOT NULL;
  CREATE TABLE registers (
    num INTEGER PRIMARY KEY, tenant TEXT NOT NULL, namespace INTEGER NOT NULL, key ANY NOT NULL, at INTEGER NOT NULL,
    data ANY NOT NULL,
    UNIQUE (tenant, namespace, key)
  ) STRICT;
  CREATE INDEX registers_by_age ON registers (namespace, at) WHERE namespace <= 2;
  CREATE TABLE passages (
    num INTEGER PRIMARY KEY, log INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, at INTEGER NOT NULL,
    UNIQUE (log, first)
  ) STRICT;
  ${TERMS_TABLE};
`;

/** Stored as `user_version`. Lower numbers belong to unreleased versions. */
export const SCHEMA_VERSION = 10;

/** Refuses a database of another version or another program, without changing it. */
export function refuseForeign(database: Database, path: string): void {
  const found = versionOf(database);
  if (found > SCHEMA_VERSION) {
    const message = `${path} has schema version ${found}; this Troupe supports up to ${SCHEMA_VERSION}. Run a newer one.`;
    throw new TroupeError('store_newer', message, { path, found, supported: SCHEMA_VERSION });
  }
  if (found === 0 ? hasTables(database) : pragma(database, 'application_id') !== APPLICATION_ID) {
    throw new TroupeError('store_corrupt', `${path} belongs to another program; choose another file`, {
      path,
    });
  }
  if (found === 0 || found === SCHEMA_VERSION) return;
  const message = `${path} has schema version ${found}, of an unreleased Troupe; this one has ${SCHEMA_VERSION}. Export its conversations with the old version and import them with this one.`;
  throw new TroupeError('store_older', message, { path, found, supported: SCHEMA_VERSION });
}

/** Creates the tables of a new database. Writes in any case, so that a read-only file is reported at the start. */
export function createTables(database: Database): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    // Read again, because another process may have created the tables while this one waited.
    if (versionOf(database) === 0) database.exec(TABLES);
    database.exec(
      `PRAGMA user_version = ${SCHEMA_VERSION}; PRAGMA application_id = ${APPLICATION_ID}; COMMIT`,
    );
  } catch (error) {
    rollback(database);
    throw error;
  }
}

function versionOf(database: Database): number {
  return pragma(database, 'user_version');
}

function pragma(database: Database, name: 'user_version' | 'application_id'): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
}

export function hasTables(database: Database): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined;
}

/**
 * The full-text index `terms` has two kinds of rows. The row id of a passage is its number; that of the words of a standing
 * is the negative number of its log. Tenant and kind are part of every term, so that a search reads no entries of another
 * tenant.
 */
type TermKind = 'passage' | 'standing';

const prefixOf = (tenant: string, kind: TermKind) => `${tenant}/${kind === 'passage' ? 'p' : 's'}/`;

export function termsText(tenant: string, kind: TermKind, terms: readonly string[]): string {
  const prefix = prefixOf(tenant, kind);
  return terms.map((term) => prefix + term).join(' ');
}

export function matchOf(tenant: string, kind: TermKind, terms: readonly TermCondition[]): string {
  const prefix = prefixOf(tenant, kind);
  return terms
    .map(({ term, whole }) => `"${prefix}${term.replaceAll('"', '')}"${whole ? '' : ' *'}`)
    .join(' AND ');
}
