import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { TroupeInput } from '../../library/config/agents-file.ts';
import type { ImportModule } from '../../library/config/load-agents-file.ts';

/** A definition and its source; `file` is null for the demo company. */
export interface FoundAgents {
  definition: TroupeInput;
  file: string | null;
}

const NAMES = ['agents.ts', 'agents.js', 'agents.mjs', 'agents.json', 'agents.yaml'];

/** The named file, else the agents file of this directory, else null. Throws `config_invalid`. */
export async function findAgents(
  file: string | undefined,
  importModule?: ImportModule,
): Promise<FoundAgents | null> {
  const path = file ?? NAMES.find((name) => existsSync(name));
  if (path === undefined) return null;
  // Checking a file loads the whole context module, which most commands do not need.
  const { loadAgentsFile } = await import('../../library/config/load-agents-file.ts');
  return { definition: await loadAgentsFile(path, importModule), file: resolve(path) };
}

export async function demoAgents(): Promise<FoundAgents> {
  return { definition: (await import('../demo/demo-company.ts')).DEMO_COMPANY, file: null };
}

/**
 * Remembers the agents file last used with a data directory, so that commands find it from any directory. It has a file of its
 * own, because the server's entry is removed when the server stops.
 */
export function rememberAgents(dir: string, { file }: FoundAgents): void {
  writeFileSync(memoryOf(dir), `${JSON.stringify({ agents: file })}\n`, { mode: 0o600 });
}

export async function recallAgents(dir: string): Promise<FoundAgents | null> {
  let agents: unknown;
  try {
    ({ agents } = JSON.parse(readFileSync(memoryOf(dir), 'utf8')) as { agents?: unknown });
  } catch {
    // The file is missing, or was not written by Troupe.
    return null;
  }
  if (agents === null) return await demoAgents();
  return typeof agents === 'string' && existsSync(agents) ? await findAgents(agents) : null;
}

function memoryOf(dir: string): string {
  return join(dir, 'agents-used.json');
}
