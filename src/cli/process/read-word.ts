import { TroupeError } from '../../base/errors.ts';

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
