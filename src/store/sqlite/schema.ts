import { TroupeError } from '../../errors.ts';
import { type Database, rollback } from './database.ts';
import { TERMS_TABLE } from './term-index.ts';

/** 'TRUP'. Marks the file as Troupe's, so that the database of another program is refused. */
const APPLICATION_ID = 0x54525550;

/**
 * Forward migrations; `user_version` counts those applied. Never edit a released one; append another.
 *
 * Two choices keep rows small and the file dense. `logs` holds the name of a conversation once; other tables use its
 * number. `events` and `registers`, the table of entries, are rowid tables, which fill their pages in order: a WITHOUT
 * ROWID table would use an overflow page of 4 kB for every row above 1 kB.
 * `pending` has, per agent, the last unprocessed event addressed to it: a sweep reads as much as there is work, not the
 * log.
 * `lastSeq` and `lastAt` of a log are those of its last event, so that listing logs reads no events.
 * `standingSeq` and the columns after it are the standing of a log, see `standings.ts`; without one they have their defaults.
 * `agents` is ',a,b,', so that one agent is found by ',a,'.
 * `passages` and `terms` are the index of words, see `passages.ts`. A database without them has it built anew: with
 * `standingSeq` 0 every log is read again.
 * `chain` of an event is null if an earlier version wrote it.
 * `registers_by_age` covers the namespaces that expire regularly: `journal` and `effect`.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE logs (
    num INTEGER PRIMARY KEY, tenant TEXT NOT NULL, conversation TEXT NOT NULL,
    UNIQUE (tenant, conversation)
  ) STRICT;
  CREATE TABLE events (
    num INTEGER PRIMARY KEY, log INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL,
    kind TEXT NOT NULL, recipients TEXT NOT NULL, hash TEXT NOT NULL, tokens INTEGER NOT NULL, turn TEXT,
    data ANY NOT NULL,
    UNIQUE (log, seq), UNIQUE (log, id)
  ) STRICT;
  CREATE TABLE addressed (
    log INTEGER NOT NULL, agent TEXT NOT NULL, seq INTEGER NOT NULL,
    PRIMARY KEY (log, agent, seq)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE pending (
    log INTEGER NOT NULL, agent TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (log, agent)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE actors (
    num INTEGER PRIMARY KEY, log INTEGER NOT NULL, agent TEXT NOT NULL, fence INTEGER NOT NULL, owner TEXT NOT NULL,
    until INTEGER NOT NULL, processed INTEGER NOT NULL, turn TEXT, cancel TEXT, parked TEXT,
    outbox INTEGER NOT NULL, data ANY NOT NULL,
    UNIQUE (log, agent)
  ) STRICT;
  CREATE INDEX actors_unfinished ON actors (num) WHERE turn IS NOT NULL OR outbox = 1;
  CREATE TABLE registers (
    num INTEGER PRIMARY KEY, tenant TEXT NOT NULL, shelf INTEGER NOT NULL, key ANY NOT NULL, at INTEGER NOT NULL,
    data ANY NOT NULL,
    UNIQUE (tenant, shelf, key)
  ) STRICT;
  CREATE INDEX registers_by_age ON registers (shelf, at) WHERE shelf <= 2;
  `,
  `
  ALTER TABLE actors ADD COLUMN wakeAt INTEGER;
  CREATE INDEX actors_timed ON actors (wakeAt) WHERE wakeAt IS NOT NULL;
  `,
  `
  ALTER TABLE logs ADD COLUMN lastSeq INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE logs ADD COLUMN lastAt INTEGER NOT NULL DEFAULT 0;
  UPDATE logs SET lastSeq = last.seq, lastAt = last.at FROM events AS last
    WHERE last.log = logs.num AND last.seq = (SELECT max(seq) FROM events WHERE log = logs.num);
  CREATE INDEX logs_by_time ON logs (tenant, lastAt, conversation, lastSeq) WHERE lastSeq > 0;
  CREATE INDEX logs_by_name ON logs (tenant, conversation, lastAt, lastSeq) WHERE lastSeq > 0;
  `,
  `
  ALTER TABLE events ADD COLUMN chain TEXT;
  `,
  `
  ALTER TABLE logs ADD COLUMN standingSeq INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE logs ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE logs ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE logs ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE logs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
  ALTER TABLE logs ADD COLUMN agents TEXT NOT NULL DEFAULT '';
  ALTER TABLE logs ADD COLUMN words TEXT NOT NULL DEFAULT '';
  ALTER TABLE logs ADD COLUMN standing ANY;
  CREATE INDEX logs_by_rank ON logs (tenant, rank, since, conversation) WHERE standingSeq > 0;
  CREATE INDEX logs_by_since ON logs (tenant, since, conversation) WHERE standingSeq > 0;
  CREATE INDEX logs_by_cost ON logs (tenant, cost, conversation) WHERE standingSeq > 0;
  CREATE INDEX logs_behind ON logs (tenant, lastAt, conversation) WHERE lastSeq > standingSeq;
  `,
  `
  CREATE TABLE passages (
    num INTEGER PRIMARY KEY, log INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, at INTEGER NOT NULL,
    UNIQUE (log, first)
  ) STRICT;
  ${TERMS_TABLE};
  UPDATE logs SET standingSeq = 0 WHERE standingSeq > 0;
  `,
  `
  ALTER TABLE logs ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX logs_by_spent ON logs (tenant, spent, conversation) WHERE standingSeq > 0;
  UPDATE logs SET standingSeq = 0 WHERE standingSeq > 0;
  `,
];

export const SCHEMA_VERSION = MIGRATIONS.length;

/** Refuses a newer database and that of another program, without changing it. */
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
}

/** Migrates the database to this version. Always writes, so that an unwritable file is reported at the start. */
export function migrate(database: Database): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    // Read again: another process may have migrated while this one waited.
    for (const step of MIGRATIONS.slice(versionOf(database))) database.exec(step);
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

/** Whether the database has any table. */
export function hasTables(database: Database): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined;
}
