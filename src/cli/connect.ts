import { existsSync } from 'node:fs';
import { TroupeError } from '../errors.ts';
import type { Client } from './client.ts';
import { type FoundAgents, findAgents, recallAgents } from './find-agents.ts';

export interface ClientOptions {
  url?: string;
  data?: string;
  agents?: string;
  json?: boolean;
}

export interface Needs {
  /** `work`: agents that take turns. `agents`: agents to look at. `data`: what is stored, agents or not. */
  needs: 'work' | 'agents' | 'data';
  /** Whether a missing data directory is made. */
  mayCreate?: boolean;
}

const DEFAULT_DATA = '.troupe';

/** The troupe a command talks to: behind `--url`, else in the data directory, else behind whoever has that open. */
export async function connect(options: ClientOptions, needs: Needs): Promise<Client> {
  const url = options.url ?? (options.data === undefined ? process.env['TROUPE_URL'] : undefined);
  if (url) return await connectTo(url);
  const dir = options.data ?? DEFAULT_DATA;
  if (!needs.mayCreate && !existsSync(dir)) {
    const message = `there is no data directory ${dir}; start "troupe dev" here, or name it with --data or --url`;
    throw new TroupeError('config_invalid', message, { data: dir });
  }
  try {
    return await openDirectly(dir, options, needs);
  } catch (error) {
    const owner = error instanceof TroupeError && error.code === 'data_busy' ? error.data['url'] : null;
    if (typeof owner !== 'string') throw error;
    return await connectTo(owner);
  }
}

async function connectTo(url: string): Promise<Client> {
  if (!URL.canParse(url)) throw new TroupeError('config_invalid', `"${url}" is not a URL`, { url });
  return (await import('./http-client.ts')).createHttpClient(url, process.env['TROUPE_TOKEN']);
}

async function openDirectly(dir: string, options: ClientOptions, { needs }: Needs): Promise<Client> {
  const found = await agentsFor(dir, options);
  if (!found && needs !== 'data') throw noAgents();
  const [{ createTroupe }, { createDirectClient }] = await Promise.all([
    import('../runtime.ts'),
    import('./direct-client.ts'),
  ]);
  const troupe = await createTroupe(found?.definition ?? { agents: [] }, {
    data: dir,
    work: needs === 'work',
    allowEmpty: needs === 'data',
  });
  return createDirectClient(troupe);
}

/** A server may be using the directory with agents that cannot be loaded here; then the server is asked. */
async function agentsFor(dir: string, { agents }: ClientOptions): Promise<FoundAgents | null> {
  return (await findAgents(agents)) ?? (await recallAgents(dir));
}

function noAgents(): TroupeError {
  const message =
    'there is no agents file: write agents.ts, name one with --agents, or start "troupe dev" for the demo company';
  return new TroupeError('config_invalid', message);
}
