import { copyFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.dirname(import.meta.dirname);

/**
 * Bundles programs of this repository, by name, into a few files below `dir` instead of a thousand. Returns the path
 * of each, or null without the bundler, which comes with vitest. Loading dominates the run time of a short command,
 * and a test run starts about a hundred.
 */
export async function bundlePrograms<Name extends string>(
  sources: Record<Name, string>,
  dir: string,
): Promise<Record<Name, string> | null> {
  const bundler = await import('rolldown').catch(() => null);
  if (!bundler) return null;
  const bundle = await bundler.rolldown({
    input: sources,
    platform: 'node',
    cwd: ROOT,
    logLevel: 'silent',
  });
  // Three folders deep, like `src/cli/process`: from there the package.json and the page are found.
  const out = path.join(dir, 'src', 'cli', 'process');
  await bundle.write({ dir: out, format: 'esm' });
  await bundle.close();
  copyFileSync(path.join(ROOT, 'package.json'), path.join(dir, 'package.json'));
  symlinkSync(path.join(ROOT, 'dist'), path.join(dir, 'dist'));
  const bundled = Object.keys(sources).map((name) => [name, path.join(out, `${name}.js`)]);
  return Object.fromEntries(bundled) as Record<Name, string>;
}
