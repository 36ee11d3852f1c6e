import { MongoClient } from 'mongodb';
import type { Found, Way } from './first-way.ts';
import { findMongod, type MongodProgram } from './mongod-program.ts';
import { findOnPath } from './run-command.ts';
import { flags, startServerProcess } from './server-process.ts';

/** Standalone: Troupe needs no more, and the driver then does not retry writes by itself. */
export const mongodOnPath: Way = {
  name: 'mongod',
  async open() {
    const command = findOnPath('mongod');
    if (!command) return { not: 'not on PATH' };
    return startMongod({ command, args: [], origin: 'PATH' });
  },
};

/** Taken only if chosen by name: where it is emulated, it is far slower than the others. */
export const anyMongod: Way = {
  name: 'any mongod',
  async open() {
    const program = await findMongod();
    return 'not' in program ? program : startMongod(program);
  },
};

async function startMongod({ command, args: before, origin }: MongodProgram): Promise<Found> {
  let version = '';
  const { port, pid, folder, stop } = await startServerProcess({
    name: 'mongod',
    command,
    args: ({ port, data }) => [
      ...before,
      ...flags({ bind_ip: '127.0.0.1', port, dbpath: data }),
      '--nounixsocket',
      '--quiet',
    ],
    ask: async (port) => (version = await askMongo(port)),
  });
  return { url: mongoUrl(port), how: `mongod ${version} (${origin})`, process: { pid, folder }, stop };
}

export function mongoUrl(port: number): string {
  return `mongodb://127.0.0.1:${port}/?directConnection=true`;
}

/** Its version, once it has taken a document and given it back. */
export async function askMongo(port: number): Promise<string> {
  const client = new MongoClient(mongoUrl(port), { serverSelectionTimeoutMS: 500, connectTimeoutMS: 2_000 });
  try {
    const admin = client.db('admin');
    const hello = await admin.command({ hello: 1 });
    if (!hello['isWritablePrimary']) throw new Error('the server takes no writes yet');
    const trial = client.db('troupe_trial').collection<{ _id: number }>('trial');
    await trial.updateOne({ _id: 1 }, { $set: { n: 1 } }, { upsert: true });
    if ((await trial.findOne({ _id: 1 })) === null) throw new Error('the server lost a document');
    await trial.drop();
    return String((await admin.command({ buildInfo: 1 }))['version']);
  } finally {
    await client.close();
  }
}
