import { mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { aptInstall } from './apt-get.ts';
import type { Found, Way } from './first-way.ts';
import { findOnPath } from './run-command.ts';
import { openServerGroup, type ServerNode } from './server-group.ts';
import { startServerProcess } from './server-process.ts';

/** Where Debian puts the programs of each major version. */
const PACKAGE_FOLDER = '/usr/lib/postgresql';

/** The programs of a server that is installed; its own clusters are left alone. */
export const postgresOnPath: Way = {
  name: 'postgres',
  async open() {
    const folder = findPrograms();
    return folder === null ? { not: 'not on PATH' } : startPostgres(folder, 'PATH');
  },
};

export const postgresByApt: Way = {
  name: 'apt-get',
  async open() {
    const failure = await aptInstall(['postgresql']);
    if (failure) return { not: failure };
    const folder = findPrograms();
    return folder === null ? { not: 'the package has no postgres' } : startPostgres(folder, 'apt-get');
  },
};

function findPrograms(): string | null {
  const found = findOnPath('initdb', debianFolders());
  return found === null ? null : path.dirname(found);
}

/** The newest first. */
function debianFolders(): string[] {
  try {
    const versions = readdirSync(PACKAGE_FOLDER).toSorted((a, b) => Number(b) - Number(a));
    return versions.map((version) => path.join(PACKAGE_FOLDER, version, 'bin'));
  } catch {
    return [];
  }
}

/**
 * The server refuses to run as root. `exec` keeps the process id. Its data is thrown away, so nothing waits for the disk. On a
 * folder with data it starts that server again.
 */
const START = `
set -e
folder=$1 port=$2 data=$3 as=
if [ "$(id -u)" = 0 ]; then
  chown -R postgres: .
  as='setpriv --reuid=postgres --regid=postgres --clear-groups'
fi
[ -e "$data/PG_VERSION" ] || $as "$folder/initdb" -D "$data" --no-sync --auth=trust --username=postgres --encoding=UTF8 --locale=C
exec $as "$folder/postgres" -D "$data" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \\
  -c fsync=off -c full_page_writes=off -c max_connections=300
`;

async function startPostgres(folder: string, origin: string): Promise<Found> {
  let version = '';
  const server = await startServerProcess({
    name: 'postgres',
    command: 'sh',
    args: ({ port, data }) => ['-c', START, 'sh', folder, String(port), data],
    ask: async (port) => (version = await askPostgres(port)),
  });
  const { port, pid, folder: files, stop } = server;
  const how = `PostgreSQL ${version} (${origin})`;
  return { url: postgresUrl(port), how, process: { pid, folder: files }, stop };
}

/** A server of one's own that is killed and started again on purpose. */
export async function startPostgresNode(): Promise<
  { url: string; version: string; node: ServerNode; stop: () => Promise<void> } | { not: string }
> {
  const folder = findPrograms();
  if (folder === null) return { not: 'no postgres on the PATH' };
  const group = openServerGroup('postgres-group');
  try {
    let version = '';
    const node = await group.add({
      command: 'sh',
      prepare: ({ folder: own }) => mkdirSync(path.join(own, 'data')),
      args: ({ port, folder: own }) => ['-c', START, 'sh', folder, String(port), path.join(own, 'data')],
      ask: async (port) => (version = await askPostgres(port)),
    });
    return { url: postgresUrl(node.port), version, node, stop: group.stop };
  } catch (error) {
    await group.stop();
    throw error;
  }
}

function postgresUrl(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}

async function askPostgres(port: number): Promise<string> {
  const client = new pg.Client({ connectionString: postgresUrl(port), connectionTimeoutMillis: 2_000 });
  // The failing request reports it.
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query("CREATE TEMPORARY TABLE trial AS SELECT to_tsvector('a word') AS words");
    const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
    return rows[0]?.server_version.split(' ')[0] ?? 'of unknown version';
  } finally {
    await client.end();
  }
}
