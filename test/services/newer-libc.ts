import path from 'node:path';
import { unpackDebian } from './debian-packages.ts';

const RELEASE = 'trixie';
const LIBRARIES = 'usr/lib/x86_64-linux-gnu';

/** A command line that starts a program with a C library of at least `wanted`, such as 2.38. */
export type WithLibc = { command: string; args: string[] } | { not: string };

/**
 * The program itself where this machine's C library is new enough. On an older Debian the libraries of a newer one are
 * unpacked into the user's cache, and the program is started by their loader: nothing is installed.
 */
export async function withLibc(wanted: string, program: string): Promise<WithLibc> {
  const has = ownVersion();
  if (has === null) return { not: 'no GNU C library' };
  if (minorOf(has) >= minorOf(wanted)) return { command: program, args: [] };
  const unpacked = await unpackDebian(`libc-${RELEASE}`, `the C library of Debian ${RELEASE}`, [
    { release: RELEASE, architecture: 'amd64', packages: ['libc6', 'libstdc++6', 'libgcc-s1'] },
  ]);
  if ('not' in unpacked) return { not: `C library ${has}, and ${wanted} is wanted: ${unpacked.not}` };
  const libraries = path.join(unpacked.folder, LIBRARIES);
  const loader = path.join(libraries, 'ld-linux-x86-64.so.2');
  return { command: loader, args: ['--library-path', libraries, program] };
}

/** Its versions are 2.MINOR. */
function minorOf(version: string): number {
  return Number(version.split('.')[1]);
}

/** Such as 2.36; null without a GNU C library. */
function ownVersion(): string | null {
  // Without it a report looks up the names of open connections.
  (process.report as { excludeNetwork?: boolean }).excludeNetwork = true;
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime ?? null;
}
