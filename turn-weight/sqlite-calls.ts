import { DatabaseSync, StatementSync } from 'node:sqlite';

/** What was asked of SQLite since the last call of `take`. */
export interface SqliteCalls {
  /** Executed statements, `BEGIN`, `COMMIT` and `PRAGMA` among them. */
  statements: number;
  /** Commits of transactions that wrote, and writes outside a transaction. */
  transactions: number;
  /** Those of them that waited for the disk. */
  synced: number;
  /** Text of each executed statement, in order. */
  texts: string[];
}

/** In WAL mode a commit waits for the disk from this value of `PRAGMA synchronous` on. */
const FULL = 2;

interface Connection {
  /** Rows that this connection had changed when its transaction began. */
  changesBefore: number;
  changes(): number;
  isSyncing(): boolean;
}

export interface SqliteWatch {
  take(): SqliteCalls;
  /** Statements so far. */
  count(): number;
}

/** Watches every connection of this process that is opened from now on. */
export function watchSqlite(): SqliteWatch {
  let calls = none();
  let count = 0;
  const connections = new WeakMap<DatabaseSync, Connection>();
  const databases = new WeakMap<StatementSync, DatabaseSync>();
  const exec = Reflect.get(DatabaseSync.prototype, 'exec') as (this: DatabaseSync, sql: string) => void;
  const prepare = Reflect.get(DatabaseSync.prototype, 'prepare') as (
    this: DatabaseSync,
    ...given: Parameters<DatabaseSync['prepare']>
  ) => StatementSync;
  const get = Reflect.get(StatementSync.prototype, 'get') as (this: StatementSync) => object | undefined;

  function connectionOf(database: DatabaseSync): Connection {
    const known = connections.get(database);
    if (known) return known;
    const valueOf = (sql: string) => {
      const statement = prepare.call(database, sql);
      return () => Number(Object.values(Reflect.apply(get, statement, []) ?? {})[0]);
    };
    const changes = valueOf('SELECT total_changes()');
    const synchronous = valueOf('PRAGMA synchronous');
    const connection = { changesBefore: changes(), changes, isSyncing: () => synchronous() >= FULL };
    connections.set(database, connection);
    return connection;
  }

  function counted<T>(database: DatabaseSync, sql: string, run: () => T): T {
    const connection = connectionOf(database);
    if (!database.isTransaction) connection.changesBefore = connection.changes();
    const result = run();
    calls.statements += 1;
    count += 1;
    calls.texts.push(sql);
    if (!database.isTransaction && connection.changes() > connection.changesBefore) {
      calls.transactions += 1;
      if (connection.isSyncing()) calls.synced += 1;
    }
    return result;
  }

  DatabaseSync.prototype.exec = function (sql) {
    counted(this, sql, () => exec.call(this, sql));
  };
  DatabaseSync.prototype.prepare = function (...given) {
    const statement = prepare.apply(this, given);
    databases.set(statement, this);
    return statement;
  };
  for (const name of ['run', 'get', 'all', 'iterate'] as const) {
    const method = StatementSync.prototype[name] as (...bindings: unknown[]) => unknown;
    const watched = function (this: StatementSync, ...bindings: unknown[]) {
      const run = () => method.apply(this, bindings);
      const database = databases.get(this);
      return database ? counted(database, this.sourceSQL, run) : run();
    };
    Object.assign(StatementSync.prototype, { [name]: watched });
  }

  return {
    take() {
      const taken = calls;
      calls = none();
      return taken;
    },
    count: () => count,
  };
}

function none(): SqliteCalls {
  return { statements: 0, transactions: 0, synced: 0, texts: [] };
}
