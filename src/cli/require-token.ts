import { TroupeError } from '../errors.ts';
import { isLoopback } from '../gateway/index.ts';

/** The token of this server, if it has one. Throws `config_invalid` where others reach the address and there is none. */
export function requireToken(host: string, env: Record<string, string | undefined>): string | undefined {
  const token = env['TROUPE_TOKEN'] || undefined;
  if (token !== undefined || isLoopback(host)) return token;
  const message = `${host} can be reached by others: set TROUPE_TOKEN, which every request must then carry, or use 127.0.0.1`;
  throw new TroupeError('config_invalid', message, { host });
}
