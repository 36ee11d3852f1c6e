import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { bundlePrograms } from '../scripts/bundle-programs.ts';

const ROOT = path.dirname(import.meta.dirname);
const VOCABULARY = 'node_modules/gpt-tokenizer';

/**
 * Bundles a program that will be killed into a few files below `dir`. This cuts a start from 0.75 s of CPU time to
 * 0.3: every kill causes a start, and several full starts a second would leave two cores no time for the work. Without
 * the bundler it returns the sources.
 */
export async function bundleProcess<Name extends string>(
  sources: Record<Name, string>,
  dir: string,
  say: (line: string) => void,
): Promise<Record<Name, string>> {
  const folder = path.join(dir, 'bundle');
  const bundled = await bundlePrograms(sources, folder);
  if (!bundled) {
    say('rolldown is missing: the processes run from their sources and start slowly');
    return sources;
  }
  // `src/base/o200k-ranks.ts` reads the vocabulary from this package.
  mkdirSync(path.join(folder, 'node_modules'));
  symlinkSync(path.join(ROOT, VOCABULARY), path.join(folder, VOCABULARY));
  return bundled;
}
