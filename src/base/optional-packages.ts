import { createRequire } from 'node:module';
import { TroupeError } from './errors.ts';

/** Packages that only one vendor or mode needs: optional peers, which its users install beside Troupe. */
export interface Need {
  /** What needs them, as the subject of a sentence. */
  by: string;
  /** Package names, each with the major version that is supported. Null: a package of Troupe. */
  packages: Readonly<Record<string, number | null>>;
}

export const ANTHROPIC: Need = { by: 'the anthropic provider', packages: { '@anthropic-ai/sdk': 1 } };
export const OPENAI: Need = { by: 'a provider with the API of OpenAI', packages: { openai: 7 } };
export const DISTRIBUTED: Need = {
  by: 'the distributed mode',
  packages: { mongodb: 7, bullmq: 6, ioredis: 6 },
};
export const POSTGRES_ALONE: Need = { by: 'the distributed mode', packages: { '@troupe/postgres': null } };
export const REDIS_ALONE: Need = { by: 'redis', packages: { bullmq: 6, ioredis: 6 } };
export const DISTRIBUTED_ON_POSTGRES: Need = {
  by: 'the distributed mode',
  packages: { '@troupe/postgres': null, bullmq: 6, ioredis: 6 },
};

export function installCommand({ packages }: Need): string {
  return `npm install ${Object.entries(packages)
    .map(([name, major]) => (major === null ? name : `${name}@${major}`))
    .join(' ')}`;
}

/** Loads a module that imports these packages. Throws `package_missing`. */
export async function loadWith<T>(need: Need, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const names = Object.keys(need.packages);
    if (!names.some((name) => isMissing(cause, name))) throw cause;
    const what = names.length === 1 ? 'a package that is' : 'packages that are';
    const message = `${need.by} needs ${what} not installed: ${installCommand(need)}`;
    throw new TroupeError('package_missing', message, { packages: names }, { cause });
  }
}

/** Whether a package can be found from here, without loading it. False also where a bundle contains it. */
export function isFound(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** False if the package is there but one of its own modules is missing. */
export function isMissing(error: unknown, name: string): boolean {
  const isNotFound = (error as { code?: unknown }).code === 'ERR_MODULE_NOT_FOUND';
  return isNotFound && error instanceof Error && error.message.includes(`'${name}'`);
}
