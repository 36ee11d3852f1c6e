import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { TroupeError } from '../../errors.ts';
import { findPeer } from '../cli/find-peer.ts';

const PACKAGE = '@openai/codex';
/** Older ones lack what taking a session back and closing the file system off need. */
const OLDEST = '0.169.0';

export interface Codex {
  version: string;
  command: string;
  /** Before the CLI's own arguments. */
  args: string[];
}

/** The installed Codex CLI. Throws `provider_unusable` when it is missing or too old. */
export function findCodex(env = process.env): Codex {
  const { dir, version } = findPeer(PACKAGE, { by: 'the codex provider', version: OLDEST }, env);
  if (isOlder(version, OLDEST)) {
    const message = `the codex provider needs ${PACKAGE} ${OLDEST} or newer, and ${version} is installed in ${dir}: npm install ${PACKAGE}@latest`;
    throw new TroupeError('provider_unusable', message, { package: PACKAGE, version });
  }
  const native = findNative(dir);
  // The script starts the same program, at the price of one more process in between.
  return native
    ? { version, command: native, args: [] }
    : { version, command: process.execPath, args: [join(dir, 'bin', 'codex.js')] };
}

/** The program comes in a package for each platform, in a folder named after the compiler's target. */
function findNative(dir: string): string | null {
  const name = `codex-${process.platform}-${process.arch}`;
  const file = process.platform === 'win32' ? 'codex.exe' : 'codex';
  for (const at of [join(dirname(dir), name), join(dir, 'node_modules', '@openai', name)]) {
    const vendor = join(at, 'vendor');
    if (!existsSync(vendor)) continue;
    for (const target of readdirSync(vendor)) {
      const path = join(vendor, target, 'bin', file);
      if (existsSync(path)) return path;
    }
  }
  return null;
}

function isOlder(version: string, than: string): boolean {
  const [left, right] = [version, than].map((each) => each.split(/[.-]/).slice(0, 3).map(Number));
  for (const [i, least] of (right ?? []).entries()) {
    const part = left?.[i] ?? 0;
    if (part !== least) return !(part > least);
  }
  return false;
}
