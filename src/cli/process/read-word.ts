import { TroupeError } from '../../errors.ts';

const ONE_WORD = /^[!-~]+$/;

/**
 * A key or token from an environment variable; undefined where it is not set. Throws `config_invalid` for a value that
 * fits no header, without repeating it: the error of `fetch` would, and a server with such a token would admit nobody.
 */
export function readWord(env: Record<string, string | undefined>, variable: string): string | undefined {
  if (!env[variable]) return undefined;
  const word = env[variable].trim();
  if (ONE_WORD.test(word)) return word;
  const message = `${variable} is no key and no token: it must be one word, without spaces, line ends and letters beyond ASCII`;
  throw new TroupeError('config_invalid', message, { variable });
}
