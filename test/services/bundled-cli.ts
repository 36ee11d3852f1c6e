import { rmSync } from 'node:fs';
import path from 'node:path';
import { bundlePrograms } from '../../scripts/bundle-programs.ts';

const ROOT = path.dirname(path.dirname(import.meta.dirname));
/** Below `node_modules`, so that unbundled packages are found. */
const DIR = path.join(ROOT, 'node_modules/.cache/troupe-cli');

/** Path of the bundled command line. Without it tests run the sources. */
export const CLI_ENV = 'TROUPE_TEST_CLI';
export const CLI_SOURCE = path.join(ROOT, 'src/cli.ts');

export interface BundledCli extends Disposable {
  path: string;
}

/** A separate bundle for this run: other runs may use this checkout. Null without the bundler. */
export async function bundleCli(): Promise<BundledCli | null> {
  const dir = path.join(DIR, String(process.pid));
  const remove = () => rmSync(dir, { recursive: true, force: true });
  remove();
  const bundled = await bundlePrograms({ cli: CLI_SOURCE }, dir);
  return bundled && { path: bundled.cli, [Symbol.dispose]: remove };
}
