import { TroupeError } from '../base/errors.ts';
import { isLoopback } from './guard.ts';

type Env = Record<string, string | undefined>;

/** The token of this server; undefined if it has none. Throws `config_invalid` for a token that a header cannot carry. */
export function readToken(env: Env): string | undefined {
  return readWord(env, 'TROUPE_TOKEN');
}

/** The token of this server. Throws `config_invalid` if other machines can reach the address and there is no token. */
export function requireToken(host: string, env: Env): string | undefined {
  const token = readToken(env);
  if (token !== undefined || isLoopback(host)) return token;
  const message = `other machines can reach ${host}: set TROUPE_TOKEN, which every request must then send, or use 127.0.0.1`;
  throw new TroupeError('config_invalid', message, { host });
}

const ONE_WORD = /^[!-~]+$/;

/**
 * Reads a key or token from an environment variable; undefined if it is not set. Throws `config_invalid` for a value that a
 * header cannot carry. The message does not repeat the value, as the error of `fetch` would.
 */
export function readWord(env: Env, variable: string): string | undefined {
  if (!env[variable]) return undefined;
  const word = env[variable].trim();
  if (ONE_WORD.test(word)) return word;
  const message = `${variable} is not a key or token: it must be one word of printable ASCII, without spaces or line breaks`;
  throw new TroupeError('config_invalid', message, { variable });
}
