/** `@troupe/postgres`: the store and the queue of many processes in PostgreSQL. Troupe loads it where `postgres` is given. */
export { postgresQueue } from './postgres-queue.ts';
export { checkPostgres, type PostgresFacts } from './store/check-postgres.ts';
export { openPostgresDriver, type PostgresDriverOptions } from './store/connect-postgres.ts';
