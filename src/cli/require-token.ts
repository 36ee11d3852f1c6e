import { TroupeError } from '../errors.ts';
import { isLoopback } from '../http/index.ts';
import type { Troupe } from '../troupe.ts';

type Env = Record<string, string | undefined>;

/** The token of this server, if it has one. Throws `config_invalid` for one that nobody could send. */
export function readToken(env: Env): string | undefined {
  return readWord(env, 'TROUPE_TOKEN');
}

/** The same. Throws `config_invalid` where others reach the address and there is none. */
export function requireToken(host: string, env: Env): string | undefined {
  const token = readToken(env);
  if (token !== undefined || isLoopback(host)) return token;
  const message = `${host} can be reached by others: set TROUPE_TOKEN, which every request must then carry, or use 127.0.0.1`;
  throw new TroupeError('config_invalid', message, { host });
}

/** Throws `config_invalid` where nobody could be let in: there is no token, no key and no issuer of tokens. */
export async function requireCredentials(
  troupe: Pick<Troupe, 'keys'>,
  parts: {
    token: string | undefined;
    access: { jwt?: object | undefined } | undefined;
    now: number;
    why: string;
  },
): Promise<void> {
  const { token, access, now, why } = parts;
  if (token !== undefined || access?.jwt) return;
  const keys = await troupe.keys.list();
  const opens = keys.some(
    ({ revokedAt, expiresAt }) => revokedAt === null && (expiresAt === null || now < expiresAt),
  );
  if (opens) return;
  const message = `${why}, and nobody has a key: set TROUPE_TOKEN, which opens everything, and make keys with "troupe keys create"`;
  throw new TroupeError('config_invalid', message);
}

const ONE_WORD = /^[!-~]+$/;

/**
 * A key or token from a variable of the environment; undefined where it is not set. Throws `config_invalid` for what fits
 * no header, without repeating it: the error of `fetch` would, and a server with such a token would let nobody in.
 */
export function readWord(env: Record<string, string | undefined>, variable: string): string | undefined {
  if (!env[variable]) return undefined;
  const word = env[variable].trim();
  if (ONE_WORD.test(word)) return word;
  const message = `${variable} is no key and no token: it must be one word, without spaces, line ends and letters beyond ASCII`;
  throw new TroupeError('config_invalid', message, { variable });
}
