import path from 'node:path';
import { bundlePrograms } from '../scripts/bundle-programs.ts';

const WORD_TOKENS = path.join(import.meta.dirname, 'word-tokens.ts');

/**
 * Programs that are killed, as a few files below `dir`. That takes a start from 0.75 s of CPU to 0.3: a kill is followed
 * by a start, and several starts a second would leave two cores no time for the work. The code is the same, but for the
 * tokenizer's vocabulary, which no invariant knows of. Without the bundler, the sources it is.
 */
export async function bundleProcess<Name extends string>(
  sources: Record<Name, string>,
  dir: string,
  say: (line: string) => void,
): Promise<Record<Name, string>> {
  const alias = { 'gpt-tokenizer/encoding/o200k_base': WORD_TOKENS };
  const bundled = await bundlePrograms(sources, path.join(dir, 'bundle'), alias);
  if (!bundled) say('there is no rolldown: the processes run from their sources, and start slowly');
  return bundled ?? sources;
}
