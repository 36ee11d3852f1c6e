import { readFile, stat } from 'node:fs/promises';
// The default import: Bun, Deno and old Node versions lack a named export of this module, and old ones must still reach
// the version check.
import nodeModule from 'node:module';
import { dirname, extname, isAbsolute, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseTroupe, type TroupeDefinition } from './agents-file.ts';
import { TroupeError } from '../../base/errors.ts';
import { type DataFile, DataSyntaxError, readDataFile } from './read-data-file.ts';

/** Imports a module by its URL. */
export type ImportModule = (url: string) => Promise<Record<string, unknown>>;

/**
 * Imports a module and what it imports. TypeScript outside `node_modules` is loaded as an ES module whatever `type` its
 * package has: `npm init` writes `commonjs`, under which `import` would be a syntax error.
 */
export const importAsModule: ImportModule = async (url) => {
  // Bun and Deno load every TypeScript file as an ES module.
  if (!hasHooks()) return (await import(url)) as Record<string, unknown>;
  const hooks = nodeModule.registerHooks({
    load: (at, context, next) =>
      next(at, isOwnTypeScript(at) ? { ...context, format: 'module-typescript' } : context),
  });
  try {
    return (await import(url)) as Record<string, unknown>;
  } finally {
    hooks.deregister();
  }
};

export function hasHooks(): boolean {
  return 'registerHooks' in nodeModule;
}

function isOwnTypeScript(url: string): boolean {
  const { protocol, pathname } = new URL(url);
  return protocol === 'file:' && pathname.endsWith('.ts') && !pathname.includes('/node_modules/');
}

/** Loads `agents.ts`, `.js`, `.mjs`, `.json` or `.yaml`. Paths in it are relative to the file. Throws `config_invalid`. */
export async function loadAgentsFile(path: string, importModule = importAsModule): Promise<TroupeDefinition> {
  const full = resolve(path);
  const { value, lineOf } = await readDefinition(full, importModule);
  const definition = parseTroupe(value, path, lineOf);
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

/** The whole file is wrong, so no line is named. */
class NotAgents extends Error {}

const FORMATS: Record<string, 'json' | 'yaml'> = { '.json': 'json', '.yaml': 'yaml', '.yml': 'yaml' };

async function readDefinition(path: string, importModule: ImportModule): Promise<DataFile> {
  try {
    if (!(await stat(path)).isFile()) throw new NotAgents('it is not a file');
    const format = FORMATS[extname(path)];
    if (format) return await readDataFile(await readFile(path, 'utf8'), format);
    const module = await importModule(pathToFileURL(path).href);
    const definition = module['default'] ?? module['troupe'];
    if (definition === undefined) throw new NotAgents('it exports neither "troupe" nor a default');
    return { value: withApp(definition, module['app']), lineOf: () => null };
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

/** The `app` that the file exports, beside its definition or in it. */
function withApp(definition: unknown, app: unknown): unknown {
  if (app === undefined || typeof definition !== 'object' || definition === null) return definition;
  const { app: own = app } = definition as { app?: unknown };
  if (own !== app)
    throw new NotAgents(
      'its "app" is not the "app" of its definition: export the one that the definition has',
    );
  return { ...definition, app };
}

function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isAbsent = (error as NodeJS.ErrnoException).syscall === 'stat';
  return isAbsent ? 'there is no such file' : error.message;
}

/** `:3` for an error in line 3 of the file; the place, for an error in a file that it imports. Empty if the stack names no file. */
function lineOf(error: unknown, path: string): string {
  if (error instanceof DataSyntaxError && error.line !== null) return `:${error.line}`;
  if (!(error instanceof Error) || error instanceof NotAgents || 'syscall' in error) return '';
  for (const line of (error.stack ?? '').split('\n')) {
    const { file, row } = placeIn(line);
    if (!isAbsolute(file) || file.includes('/node_modules/') || file.startsWith(OWN_FILES)) continue;
    return file === path ? `:${row}` : ` (${file}:${row})`;
  }
  return '';
}

/** The file and its row in a stack frame, or in the first line of a syntax error. Files are paths or URLs there. */
function placeIn(line: string): { file: string; row: string } {
  const frame = line.replace(/^ {4}at (?:async )?/, '');
  const place = frame.endsWith(')') ? frame.slice(frame.indexOf(' (') + 2, -1) : frame;
  const [, where = '', row = ''] = /^((?:file:\/\/\/)?(?:[A-Za-z]:)?[^:]+):(\d+)(?::\d+)?$/.exec(place) ?? [];
  const [url = ''] = where.split('?', 1);
  return { file: url.startsWith('file:///') ? fileURLToPath(url) : where, row };
}

/** The folder of Troupe's own code, whose frames say nothing of the agents file. */
const OWN_FILES = fileURLToPath(new URL('../../', import.meta.url));
