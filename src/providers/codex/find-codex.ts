import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findPeer } from '../cli/find-peer.ts';

export interface Codex {
  version: string;
  command: string;
  /** Before the CLI's own arguments. */
  args: string[];
}

/** The installed Codex CLI. Throws `provider_unusable` when it is missing or too old. */
export function findCodex(env = process.env): Codex {
  const { dir, version } = findPeer('codex', env);
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
