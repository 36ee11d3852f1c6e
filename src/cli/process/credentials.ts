import { type AccessInput, trafficTimes } from '../../library/access/index.ts';
import { TroupeError } from '../../base/errors.ts';
import type { Troupe } from '../../library/troupe.ts';

/**
 * Options of an app: which callers are admitted (by this server's token, the keys, and `access` of the agents file), and their
 * rates.
 */
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
    traffic: trafficTimes(limits),
  };
}

/** Throws `config_invalid` if nobody could be admitted: there is no token, no valid key and no token issuer. */
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
