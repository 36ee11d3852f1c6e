import path from 'node:path';
import type { Way } from './first-way.ts';
import { askMongo, mongoUrl } from './mongod.ts';
import { installPythonLibrary } from './python-library.ts';
import { flags, startServerProcess } from './server-process.ts';

/** SecantusDB, a server that speaks the protocol of MongoDB and keeps its data in WiredTiger. */
const WANTED = { name: 'SecantusDB', label: 'secantus', version: '0.7.0b3' };
const LAUNCHER = path.join(import.meta.dirname, 'secantus-launcher.py');

export const secantusByPip: Way = {
  name: 'SecantusDB',
  async open() {
    const library = await installPythonLibrary(WANTED);
    if ('not' in library) return library;
    const { port, pid, folder, stop } = await startServerProcess({
      name: 'secantus',
      command: library.command,
      args: ({ port, data }) => [
        LAUNCHER,
        ...flags({ host: '127.0.0.1', port, 'storage-path': data, 'log-level': 'WARNING' }),
        // As a standalone it keeps no oplog, so every write is a third cheaper. This is also the harder case: the
        // driver retries no write, and there are no change streams. It syncs its log for writes that ask for that (j:
        // true), so --sync-on-commit would add nothing.
        '--standalone',
        // Idle connections pin what they last read, and nothing newer can be evicted. With the default of 1 GB a
        // whole test run fills the cache, and then every operation waits forever.
        ...flags({ 'cache-size': '4G' }),
      ],
      env: { PYTHONPATH: library.folder },
      ask: askMongo,
    });
    return {
      url: mongoUrl(port),
      how: `SecantusDB ${library.version} (pip)`,
      process: { pid, folder },
      stop,
    };
  },
};
