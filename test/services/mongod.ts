import { MongoClient } from 'mongodb';
import type { Way } from './first-way.ts';
import { findOnPath } from './run-command.ts';
import { flags, startServerProcess } from './server-process.ts';

/** Standalone: Troupe needs no more, and the driver then does not retry writes by itself. */
export const mongodOnPath: Way = {
  name: 'mongod',
  async open() {
    const command = findOnPath('mongod');
    if (!command) return { not: 'not on PATH' };
    let version = '';
    const { port, pid, folder, stop } = await startServerProcess({
      name: 'mongod',
      command,
      args: ({ port, data }) => [
        ...flags({ bind_ip: '127.0.0.1', port, dbpath: data }),
        '--nounixsocket',
        '--quiet',
      ],
      ask: async (port) => (version = await askMongo(port)),
    });
    return { url: mongoUrl(port), how: `mongod ${version} (PATH)`, process: { pid, folder }, stop };
  },
};

export function mongoUrl(port: number): string {
  return `mongodb://127.0.0.1:${port}/?directConnection=true`;
}

/** Its version, once it accepts writes. */
export async function askMongo(port: number): Promise<string> {
  const client = new MongoClient(mongoUrl(port), { serverSelectionTimeoutMS: 500, connectTimeoutMS: 2_000 });
  try {
    const admin = client.db('admin');
    const hello = await admin.command({ hello: 1 });
    if (!hello['isWritablePrimary']) throw new Error('the server takes no writes yet');
    return String((await admin.command({ buildInfo: 1 }))['version']);
  } finally {
    await client.close();
  }
}
