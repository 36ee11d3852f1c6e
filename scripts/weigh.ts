import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { openScratch } from '../test/services/scratch.ts';
import { checkWeight } from './check-weight.ts';
import { installTarball, packTroupe } from './packed.ts';

/** Packs Troupe, installs the tarball into an empty folder, and prints what that puts on the disk. */
using scratch = openScratch();
const app = path.join(scratch.folder, 'app');
mkdirSync(app);
installTarball(app, packTroupe(scratch.folder));
try {
  console.log(checkWeight(app));
} catch (error) {
  console.error(`weigh: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
