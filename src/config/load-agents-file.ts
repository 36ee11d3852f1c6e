import { readFile, stat } from 'node:fs/promises';
import { dirname, extname, isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseTroupe, type TroupeDefinition } from './agents-file.ts';
import { TroupeError } from '../errors.ts';

/** Loads `agents.ts`, `.js`, `.mjs` or `.json`. Paths in it are relative to the file. Throws `config_invalid`. */
export async function loadAgentsFile(path: string): Promise<TroupeDefinition> {
  const full = resolve(path);
  const definition = parseTroupe(await readDefinition(full), path);
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

async function readDefinition(path: string): Promise<unknown> {
  try {
    if (!(await stat(path)).isFile()) throw new Error('it is not a file');
    if (extname(path) === '.json') return JSON.parse(await readFile(path, 'utf8')) as unknown;
    const module = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
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

/** `:3` for a syntax error in line 3. Node gives the line only at the start of the stack. */
function lineOf(error: unknown, path: string): string {
  const [head = ''] = error instanceof SyntaxError ? (error.stack ?? '').split('\n') : [];
  return head.startsWith(`${path}:`) ? head.slice(path.length) : '';
}
