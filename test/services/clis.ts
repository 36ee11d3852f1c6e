import path from 'node:path';
import { hasPackages, installNpmFolder, versionAt } from './npm-folder.ts';
import { type Unusable, unusableParts } from './unusable.ts';

/** Claude Code and Codex, which only provider tests need: some 800 MB, in a separate package. */
const HOME = path.join(path.dirname(import.meta.dirname), 'clis');
/** The first place where providers look for them; see `packages/agents/src/programs.ts`. */
export const PEERS_ENV = 'TROUPE_PEERS';
const PROGRAMS = { 'Claude Code': '@anthropic-ai/claude-agent-sdk', Codex: '@openai/codex' };

export type Clis = { home: string; unusable: Unusable } | { missing: string };

/** Installs the locked versions if they are missing, and has each answer once. `TROUPE_TEST_CLIS=none` does not install. */
export async function installClis(env: NodeJS.ProcessEnv = process.env): Promise<Clis> {
  if (env[PEERS_ENV]) return { home: env[PEERS_ENV], unusable: unusableParts(env) };
  const packages = Object.values(PROGRAMS);
  if (env['TROUPE_TEST_CLIS'] === 'none' && !hasPackages({ home: HOME, packages }))
    return { missing: 'TROUPE_TEST_CLIS: none' };
  const failure = await installNpmFolder({ home: HOME, packages, label: 'Claude Code and Codex' });
  if (failure !== null) return { missing: failure };
  const { tryClaudeCode, tryCodex } = await import('./try-clis.ts');
  const [claudeCode, codex] = await Promise.all([tryClaudeCode(), tryCodex()]);
  return {
    home: HOME,
    unusable: {
      ...(claudeCode !== null && { 'Claude Code': claudeCode }),
      ...(codex !== null && { Codex: codex }),
    },
  };
}

export function describeClis(clis: Clis): string {
  if ('missing' in clis) return `CLIs: none (${clis.missing})`;
  const found = (['Claude Code', 'Codex'] as const).map((label) => {
    const name = PROGRAMS[label];
    const unusable = clis.unusable[label];
    return `${label}: ${name} ${versionAt(clis.home, name) ?? 'not there'}${unusable ? ` (${unusable})` : ''}`;
  });
  return `CLIs: ${found.join(', ')}`;
}
