import { readFile, stat } from 'node:fs/promises';
import { dirname, extname, isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseTroupe, type TroupeDefinition } from './agents-file.ts';
import { TroupeError } from '../errors.ts';

/** Imports a module by its URL. */
export type ImportModule = (url: string) => Promise<Record<string, unknown>>;

const importOnce: ImportModule = (url) => import(url) as Promise<Record<string, unknown>>;

/** Loads `agents.ts`, `.js`, `.mjs` or `.json`. Paths in it are relative to the file. Throws `config_invalid`. */
export async function loadAgentsFile(path: string, importModule = importOnce): Promise<TroupeDefinition> {
  const full = resolve(path);
  const definition = parseTroupe(await readDefinition(full, importModule), path);
  const base = dirname(full);
  if (definition.workspace !== undefined) definition.workspace = resolve(base, definition.workspace);
  if (definition.skills) definition.skills = definition.skills.map((dir) => resolve(base, dir));
  for (const agent of [...definition.agents, ...(definition.templates ?? [])]) {
    if (agent.workspace !== undefined) agent.workspace = resolve(base, agent.workspace);
    if (agent.skills) agent.skills = agent.skills.map((dir) => resolve(base, dir));
    if (agent.provider === 'scripted' && typeof agent.script === 'string' && !isAbsolute(agent.script)) {
      agent.script = resolve(base, agent.script);
    }
  }
  for (const server of Object.values(definition.mcpServers ?? {})) {
    if ('command' in server) server.cwd = resolve(base, server.cwd ?? '');
  }
  return definition;
}

async function readDefinition(path: string, importModule: ImportModule): Promise<unknown> {
  try {
    if (!(await stat(path)).isFile()) throw new Error('it is not a file');
    if (extname(path) === '.json') return JSON.parse(await readFile(path, 'utf8')) as unknown;
    const module = await importModule(pathToFileURL(path).href);
    const definition = module['default'] ?? module['troupe'];
    if (definition === undefined) throw new Error('it exports neither "troupe" nor a default');
    return definition;
  } catch (error) {
    const where = `${path}${lineOf(error, path)}`;
    throw new TroupeError(
      'config_invalid',
      `cannot load ${where}: ${whyOf(error)}`,
      { path },
      { cause: error },
    );
  }
}

function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isAbsent = (error as NodeJS.ErrnoException).syscall === 'stat';
  return isAbsent ? 'there is no such file' : error.message;
}

/** `:3` for an error in line 3 of the file, or where an error in a file that it imports is. Empty if the stack names no file. */
function lineOf(error: unknown, path: string): string {
  if (!(error instanceof Error)) return '';
  for (const line of (error.stack ?? '').split('\n')) {
    // The first line of a syntax error is `file:line`, the others are frames.
    const found = /(?:^|\(|\s)(?:file:\/\/)?(\/[^\s()?]+)(?:\?[^\s():]*)?:(\d+)(?::\d+)?\)?$/.exec(line);
    const [, file = '', row = ''] = found ?? [];
    if (file === '' || file.includes('/node_modules/') || file.startsWith(OWN_FILES)) continue;
    return file === path ? `:${row}` : ` (${file}:${row})`;
  }
  return '';
}

/** The folder of Troupe's own code, whose frames say nothing of the agents file. */
const OWN_FILES = new URL('../', import.meta.url).pathname;
