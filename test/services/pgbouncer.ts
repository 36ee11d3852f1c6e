import { writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { aptInstall } from './apt-get.ts';
import { findOnPath } from './run-command.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';

/** Passes the path of PgBouncer, or the reason why there is none, to the tests, as JSON. */
export const PGBOUNCER_ENV = 'TROUPE_PGBOUNCER';
const PACKAGE_FOLDERS = ['/usr/sbin', '/usr/bin'];

export type PgBouncer = { path: string } | { not: string };

/** Finds or installs the pooler of connections in front of a PostgreSQL, which one test needs. */
export async function installPgBouncer(env: NodeJS.ProcessEnv = process.env): Promise<PgBouncer> {
  const given = env[PGBOUNCER_ENV];
  if (given) return JSON.parse(given) as PgBouncer;
  if (env['TROUPE_TEST_SERVICES'] === 'none') return { not: 'TROUPE_TEST_SERVICES: none' };
  const failure = findOnPath('pgbouncer', PACKAGE_FOLDERS) ? null : await aptInstall(['pgbouncer']);
  const found = findOnPath('pgbouncer', PACKAGE_FOLDERS);
  return found ? { path: found } : { not: failure ?? 'the package has no pgbouncer' };
}

/** It refuses to run as root. */
const START = `
set -e
program=$1 settings=$2 as=
if [ "$(id -u)" = 0 ]; then
  chown -R postgres: .
  as='setpriv --reuid=postgres --regid=postgres --clear-groups'
fi
exec $as "$program" "$settings"
`;

/** In front of the server of `url`. */
export async function startPgBouncer(
  program: string,
  { url, mode }: { url: string; mode: 'session' | 'transaction' },
): Promise<ServerProcess & { url: string }> {
  const { hostname, port: target, username, pathname } = new URL(url);
  const through = (port: number) => `postgres://${username}@127.0.0.1:${port}${pathname}`;
  const server = await startServerProcess({
    name: 'pgbouncer',
    command: 'sh',
    args({ port, data }) {
      const settings = path.join(data, 'pgbouncer.ini');
      const users = path.join(data, 'users.txt');
      writeFileSync(users, `"${username}" ""\n`);
      writeFileSync(
        settings,
        `[databases]
* = host=${hostname} port=${target}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = ${mode}
`,
      );
      return ['-c', START, 'sh', program, settings];
    },
    async ask(port) {
      const client = new pg.Client({ connectionString: through(port), connectionTimeoutMillis: 2_000 });
      client.on('error', () => {}); // The failing request reports it.
      try {
        await client.connect();
        await client.query('SELECT 1');
      } finally {
        await client.end();
      }
    },
  });
  return { ...server, url: through(server.port) };
}
