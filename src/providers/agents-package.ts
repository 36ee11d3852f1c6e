import type { Clock } from '../base/clock.ts';
import { loadWith } from '../base/optional-packages.ts';
import type { Provider } from './provider.ts';
import type { ReplyLimitSettings } from './reply-limits.ts';

/** The interface of `@troupe/agents` that the core uses. The package is separate and optional. */
export interface AgentsPackage {
  /** Claude Code, which keeps its sessions below `home`. */
  createClaudeCode(options: ProgramOptions & { clock: Clock; builtinTools: readonly string[] }): Provider;
  /** Codex, which keeps its sessions below `home`. */
  createCodex(
    options: ProgramOptions & {
      builtinTools: readonly 'shell'[];
      sandbox: 'read-only' | 'workspace-write' | 'danger-full-access';
    },
  ): Provider;
  /** An agent elsewhere, reached with A2A. */
  createA2a(options: RemoteOptions): Provider;
  /** The package of the program that a provider starts. Throws `provider_unusable` if it is missing or too old. */
  findProgram(provider: ProgramProvider, env: Env): { name: string; version: string };
}

/** Who starts a program on this machine. */
type ProgramProvider = 'claude-code' | 'codex';
type Env = Readonly<Record<string, string | undefined>>;

interface ProgramOptions {
  /** Directory of the program's state. */
  home: string;
  /** Environment variables of the program besides PATH. */
  env: Readonly<Record<string, string>>;
  /** Working directory. Default: an empty directory for each session. */
  cwd?: string;
  baseUrl?: string;
  /** Without a key, the program's own login is used. */
  apiKey?: string;
  replyLimits?: ReplyLimitSettings;
}

interface RemoteOptions {
  /** The agent card's URL, or that of the server that has the card at `/.well-known/agent-card.json`. */
  url: string;
  /** Bearer token. */
  apiKey: string | undefined;
  /** Public keys. One of them must have signed the card. */
  cardKeys: readonly Readonly<Record<string, unknown>>[] | undefined;
  clock: Clock;
  replyLimits?: ReplyLimitSettings;
}

const AGENTS = ['claude-code', 'codex', 'a2a'] as const;

/** Whether this provider is in the package. */
export function isInPackage(provider: string): provider is (typeof AGENTS)[number] {
  return AGENTS.some((each) => each === provider);
}

/** Throws `package_missing` with the command that installs the package. */
export async function loadAgents(provider: (typeof AGENTS)[number]): Promise<AgentsPackage> {
  const need = { by: `the ${provider} provider`, packages: { '@troupe/agents': null } };
  // `as string`: the core compiles without the package.
  return await loadWith(need, async () => (await import('@troupe/agents' as string)) as AgentsPackage);
}
