import { copyFileSync } from 'node:fs';
import path from 'node:path';

/** What a process of the fleet is started with. */
export interface ProcessFiles {
  standby: string;
  agents: string;
}

const ROOT = path.dirname(import.meta.dirname);
const SOURCES: ProcessFiles = {
  standby: path.join(import.meta.dirname, 'standby.ts'),
  agents: path.join(import.meta.dirname, 'agents.ts'),
};

/**
 * The processes as a few files instead of a thousand, which takes a start from 0.75 s of CPU to 0.3: a kill is followed
 * by a start, and several starts a second would leave two cores no time for the work. The code is the same, but for the
 * tokenizer's vocabulary, which no invariant knows of. Without the bundler, which comes with vitest, the sources do.
 */
export async function bundleProcess(dir: string, say: (line: string) => void): Promise<ProcessFiles> {
  const bundler = await import('rolldown').catch(() => null);
  if (!bundler) {
    say('there is no rolldown: the processes run from their sources, and start slowly');
    return SOURCES;
  }
  const bundle = await bundler.rolldown({
    input: { ...SOURCES },
    platform: 'node',
    cwd: ROOT,
    resolve: {
      alias: { 'gpt-tokenizer/encoding/o200k_base': path.join(import.meta.dirname, 'word-tokens.ts') },
    },
    logLevel: 'silent',
  });
  // Two folders down, as in `src/cli`: the version is read from the package.json above.
  const out = path.join(dir, 'bundle', 'src', 'cli');
  await bundle.write({ dir: out, format: 'esm' });
  await bundle.close();
  copyFileSync(path.join(ROOT, 'package.json'), path.join(dir, 'bundle', 'package.json'));
  return { standby: path.join(out, 'standby.js'), agents: path.join(out, 'agents.js') };
}
