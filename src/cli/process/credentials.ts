import type { AccessInput } from '../../library/access/index.ts';
import { TroupeError } from '../../base/errors.ts';
import { isLoopback } from '../../http/api/index.ts';
import type { Troupe } from '../../library/troupe.ts';

type Env = Record<string, string | undefined>;

/** The token of this server; undefined without one. Throws `config_invalid` for a token that no header can carry. */
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

/** Options of an app: the callers that this server's token, the keys and the agents file's `access` admit, and their rates. */
export function callerOptions(
  troupe: Pick<Troupe, 'authenticate'>,
  token: string | undefined,
  { cors, limits, publicUrl }: Pick<AccessInput, 'cors' | 'limits' | 'publicUrl'> = {},
) {
  return {
    token,
    authenticate: (credential: string) => troupe.authenticate(credential),
    cors,
    publicUrl,
    limits,
    traffic: limits,
  };
}

/** Throws `config_invalid` if no caller could be admitted: there is no token, no valid key and no token issuer. */
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
  const message = `${why}, and there are no keys: set TROUPE_TOKEN, which allows everything, and create keys with "troupe keys create"`;
  throw new TroupeError('config_invalid', message);
}

const ONE_WORD = /^[!-~]+$/;

/**
 * Reads a key or token from an environment variable; undefined if it is not set. Throws `config_invalid` for a value
 * that no header can carry. The message does not repeat the value, as the error of `fetch` would.
 */
export function readWord(env: Record<string, string | undefined>, variable: string): string | undefined {
  if (!env[variable]) return undefined;
  const word = env[variable].trim();
  if (ONE_WORD.test(word)) return word;
  const message = `${variable} is not a key or token: it must be one word of printable ASCII, without spaces or line breaks`;
  throw new TroupeError('config_invalid', message, { variable });
}
