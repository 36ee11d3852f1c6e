import { existsSync } from 'node:fs';
import { TroupeError } from '../../base/errors.ts';
import { lockDataDir } from '../../store/sqlite/data-lock.ts';
import type { Troupe } from '../../library/troupe.ts';
import type { Client } from './client.ts';
import { findAgents, recallAgents } from '../process/find-agents.ts';
import { readWord } from '../../http/server-token.ts';

export interface ClientOptions {
  url?: string;
  data?: string;
  agents?: string;
  json?: boolean;
}

interface Needs {
  /** `work`: agents that take turns. `agents`: agents to inspect. `names`: agents if there are any. `data`: stored data only. */
  needs: 'work' | 'agents' | 'names' | 'data';
  /** Creates the data directory if it is missing. */
  mayCreate?: boolean;
}

export const DEFAULT_DATA = '.troupe';

/** Opens the troupe of a command: at `--url`, else in the data directory, or at the server process that has it open. */
export async function connect(options: ClientOptions, needs: Needs): Promise<Client> {
  const place = placeOf(options, needs);
  if ('url' in place) return await connectTo(place.url);
  const [troupe, { createDirectClient }] = await Promise.all([
    openTroupe(place.dir, options, needs),
    import('./direct-client.ts'),
  ]);
  return createDirectClient(troupe);
}

/** Where the troupe of a command is: behind a URL, or in a data directory that no process has open. */
export function placeOf(
  options: ClientOptions,
  { mayCreate }: Pick<Needs, 'mayCreate'>,
): { url: string } | { dir: string } {
  const url = options.url ?? (options.data === undefined ? process.env['TROUPE_URL'] : undefined);
  if (url) return { url };
  const dir = options.data ?? DEFAULT_DATA;
  if (!mayCreate && !existsSync(dir)) {
    const message = `there is no data directory ${dir}; start "troupe dev" here, or name it with --data or --url`;
    throw new TroupeError('config_invalid', message, { data: dir });
  }
  const owner = serverOf(dir);
  return owner === null ? { dir } : { url: owner };
}

/** URL of the process that has the directory open; null if there is none. Throws `data_busy` if that process has no URL. */
export function serverOf(dir: string): string | null {
  if (!existsSync(dir)) return null;
  try {
    lockDataDir(dir).release();
    return null;
  } catch (error) {
    const url = error instanceof TroupeError && error.code === 'data_busy' ? error.data['url'] : null;
    if (typeof url === 'string') return url;
    throw error;
  }
}

async function connectTo(url: string): Promise<Client> {
  if (!URL.canParse(url)) throw new TroupeError('config_invalid', `"${url}" is not a URL`, { url });
  return (await import('./http-client.ts')).createHttpClient(url, credentialOf(process.env));
}

/** A key identifies the caller more precisely than the server's token, so it takes precedence. */
export function credentialOf(env: NodeJS.ProcessEnv): string | undefined {
  return readWord(env, env['TROUPE_KEY'] ? 'TROUPE_KEY' : 'TROUPE_TOKEN');
}

/** The troupe of a data directory, in this process. */
export async function openTroupe(
  dir: string,
  { agents }: Pick<ClientOptions, 'agents'>,
  { needs }: Pick<Needs, 'needs'>,
): Promise<Troupe> {
  const found = needs === 'data' ? null : ((await findAgents(agents)) ?? (await recallAgents(dir)));
  const mayBeEmpty = needs === 'data' || needs === 'names';
  if (!found && !mayBeEmpty) throw noAgents();
  const { createTroupe } = await import('../../library/runtime/create-troupe.ts');
  const { doors, ...definition } = found?.definition ?? { agents: [] };
  // Without a server, doors are of use only for their work beside routes, and only while turns are taken.
  return createTroupe(needs === 'work' ? { ...definition, doors } : definition, {
    data: dir,
    work: needs === 'work',
    allowEmpty: mayBeEmpty,
  });
}

function noAgents(): TroupeError {
  const message =
    'no agents file found: write agents.ts, name one with --agents, or start "troupe dev" for the demo company';
  return new TroupeError('config_invalid', message);
}
