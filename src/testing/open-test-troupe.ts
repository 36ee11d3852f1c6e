import type { TroupeInput } from '../library/config/agents-file.ts';
import { openTroupe, type TroupeOptions } from '../library/runtime/create-troupe.ts';
import type { Troupe } from '../library/troupe.ts';

/** Prompts contain numbers that follow from the secret of the store. */
const TEST_SECRET = 'troupe-evals';

/**
 * Opens a troupe as `createTroupe` does, with the same secret in every new store: two runs of a test then give the same
 * prompts, byte by byte. Throws `config_invalid`.
 */
export function openTestTroupe(input: TroupeInput, options: TroupeOptions = {}): Promise<Troupe> {
  return openTroupe(input, { ...options, newSecret: TEST_SECRET });
}
