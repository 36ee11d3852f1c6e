import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { installTarball, packTroupe } from './packed.ts';
import { weighInstall, type Weight } from './weigh-install.ts';

/**
 * Packs Troupe, installs the tarball into an empty folder, and prints what that puts on the disk: in total, and for
 * each direct dependency what would be gone without it. Fails over the limit.
 */
const LIMIT: Weight = { bytes: 80e6, packages: 90 };

const scratch = mkdtempSync(path.join(tmpdir(), 'troupe-weigh-'));
try {
  const app = path.join(scratch, 'app');
  mkdirSync(app);
  installTarball(app, packTroupe(scratch));
  const { total, parts } = weighInstall(app, 'troupe');
  for (const [name, weight] of parts) console.log(line(weight, name));
  console.log(line(total, `in total, of at most ${describe(LIMIT)}`));
  if (total.bytes > LIMIT.bytes || total.packages > LIMIT.packages) {
    console.error(
      'weigh: the default install is over its limit. What most users do not need is an optional peer.',
    );
    process.exitCode = 1;
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function line({ bytes, packages }: Weight, name: string): string {
  return `${megabytes(bytes).padStart(8)} MB ${String(packages).padStart(4)} packages  ${name}`;
}

function describe({ bytes, packages }: Weight): string {
  return `${megabytes(bytes)} MB and ${packages} packages`;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
