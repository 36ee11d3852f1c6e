import { existsSync } from 'node:fs';
import { loadEnvFile } from 'node:process';
import { TroupeError } from '../../base/errors.ts';

const ENV_FILE = '.env';

/** Reads `.env` of this directory with Node's own parser. Variables that are set already win. Returns whether there is one. */
export function readEnvFile(): boolean {
  if (!existsSync(ENV_FILE)) return false;
  try {
    loadEnvFile(ENV_FILE);
    return true;
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? 'it is not text';
    throw new TroupeError('config_invalid', `cannot read .env (${reason}); mend or remove it`, {}, { cause });
  }
}
