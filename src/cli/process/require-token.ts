import { TroupeError } from '../../errors.ts';
import { isLoopback } from '../../http/index.ts';
import type { Troupe } from '../../troupe.ts';
import { readWord } from './read-word.ts';

type Env = Record<string, string | undefined>;

/** The token of this server, if it has one. Throws `config_invalid` for a token that no header could carry. */
export function readToken(env: Env): string | undefined {
  return readWord(env, 'TROUPE_TOKEN');
}

/** The token of this server. Throws `config_invalid` where other machines reach the address and there is no token. */
export function requireToken(host: string, env: Env): string | undefined {
  const token = readToken(env);
  if (token !== undefined || isLoopback(host)) return token;
  const message = `other machines can reach ${host}: set TROUPE_TOKEN, which every request must then carry, or use 127.0.0.1`;
  throw new TroupeError('config_invalid', message, { host });
}

/** Throws `config_invalid` where no caller could be admitted: there is no token, no key and no issuer of tokens. */
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
  const message = `${why}, and there is no key: set TROUPE_TOKEN, which allows everything, and create keys with "troupe keys create"`;
  throw new TroupeError('config_invalid', message);
}
