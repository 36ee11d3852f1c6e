import { readFileSync } from 'node:fs';
import path from 'node:path';
import { installNpmFolder, versionAt } from '../../../test/services/npm-folder.ts';
import { installPythonLibrary } from '../../../test/services/python-library.ts';
import { installTemporal } from '../install-temporal.ts';
import { HOME, NPM, PYTHON } from '../packages.ts';
import type { Need } from './load.ts';

/** How a script that needs something is started; `version` is what was found. */
export interface Installed {
  version: string;
  command: string;
  env: Record<string, string>;
}

type Ways = Installed | { not: string };

/** Installs what is needed when it is first needed. */
export function createInstaller(): (need: Need) => Promise<Ways> {
  const known = new Map<Need, Promise<Ways>>();
  return (need) => {
    const ways = known.get(need) ?? INSTALL[need]();
    known.set(need, ways);
    return ways;
  };
}

const INSTALL: Record<Need, () => Promise<Ways>> = {
  nothing: () => Promise.resolve(javascript('')),
  troupe() {
    const own = JSON.parse(readFileSync(path.join(HOME, '../../package.json'), 'utf8')) as {
      version: string;
    };
    return Promise.resolve(javascript(own.version));
  },
  async mastra() {
    const packages = Object.values(NPM);
    const not = await installNpmFolder({ home: HOME, packages, label: 'the peers' });
    return not === null ? javascript(versionAt(HOME, NPM.mastra) ?? '') : { not };
  },
  async langgraph() {
    const library = await installPythonLibrary(PYTHON.langgraph);
    if ('not' in library) return library;
    const { command, folder } = library;
    const [core] = PYTHON.langgraph.beside;
    return { version: core.replace('langgraph==', ''), command, env: { PYTHONPATH: folder } };
  },
  async temporal() {
    const temporal = await installTemporal();
    if ('not' in temporal) return temporal;
    const { command, folder, version, server } = temporal;
    const env = { PYTHONPATH: folder, TEMPORAL_SERVER: server, OPENAI_AGENTS_DISABLE_TRACING: '1' };
    return { version, command, env };
  },
};

function javascript(version: string): Installed {
  return { version, command: process.execPath, env: {} };
}
