import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ProviderCapabilities, STATELESS, TroupeError } from './troupe.ts';

/** Capabilities of a command-line program that keeps its sessions itself. */
export const WITH_SESSIONS: ProviderCapabilities = {
  ...STATELESS,
  sessionResumption: true,
  rewind: true,
  fork: true,
  images: true,
};

type Program = keyof typeof PROGRAMS;

/** An optional package. Only some users need it, so it is not a dependency. */
interface Peer {
  dir: string;
  version: string;
  manifest: Record<string, unknown>;
}

/** Minimum versions. Older ones cannot rewind, or treat other participants' text as commands. */
const PROGRAMS = {
  'claude-code': { name: '@anthropic-ai/claude-agent-sdk', version: '0.3.330' },
  codex: { name: '@openai/codex', version: '0.169.0' },
} as const;

/** Variable with a directory whose `node_modules` is searched first. */
export const PEERS_ENV = 'TROUPE_PEERS';

/**
 * Finds an optional package from this file, or from the working directory: Troupe may be installed globally, and the package
 * in the project. Throws `provider_unusable` with install instructions if the package is missing or too old.
 */
export function findPeer(provider: Program, env: Env = process.env): Peer {
  const { name, version } = PROGRAMS[provider];
  const by = `the ${provider} provider`;
  const found = findAny(name, env);
  if (!found) {
    const message = `${by} needs the package ${name}, which is not installed: npm install ${name}@${version}`;
    throw new TroupeError('provider_unusable', message, { package: name });
  }
  if (isOlder(found.version, version)) {
    const message = `${by} needs ${name} ${version} or newer, and ${found.version} is installed in ${found.dir}: npm install ${name}@latest`;
    throw new TroupeError('provider_unusable', message, { package: name, version: found.version });
  }
  return found;
}

/** Name and version of the installed package of a program. Throws `provider_unusable`. */
export function findProgram(provider: Program, env?: Env): { name: string; version: string } {
  return { name: PROGRAMS[provider].name, version: findPeer(provider, env).version };
}

function findAny(name: string, env: Env): Peer | null {
  const starts = [env[PEERS_ENV], process.cwd(), import.meta.dirname];
  for (const start of starts) {
    for (const dir of start === undefined ? [] : upward(start)) {
      const found = readPeer(join(dir, 'node_modules', name));
      if (found) return found;
    }
  }
  return null;
}

type Env = Readonly<Record<string, string | undefined>>;

function* upward(start: string): Generator<string> {
  let dir = start;
  yield dir;
  while (dir !== dirname(dir)) yield (dir = dirname(dir));
}

function readPeer(dir: string): Peer | null {
  const file = join(dir, 'package.json');
  if (!existsSync(file)) return null;
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  return { dir, version: String(manifest['version']), manifest };
}

function isOlder(version: string, than: string): boolean {
  const [left = [], right = []] = [version, than].map((each) => each.split(/[.-]/).slice(0, 3).map(Number));
  const at = right.findIndex((part, i) => part !== (left[i] ?? 0));
  return at >= 0 && !((left[at] ?? 0) > (right[at] ?? 0));
}
