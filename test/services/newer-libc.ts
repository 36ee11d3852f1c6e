import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { findOnPath, runCommand } from './run-command.ts';
import { say } from './say.ts';

const APT_MS = 120_000;
const SOURCES = '/etc/apt/sources.list.d/debian.sources';
const RELEASE = 'trixie';
const PACKAGES = ['libc6', 'libstdc++6', 'libgcc-s1'];
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
  const cache = path.join(process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache'), 'troupe');
  const folder = path.join(cache, `libc-${RELEASE}`);
  const failure = existsSync(folder) ? null : await unpack(folder);
  if (failure !== null) return { not: `C library ${has}, and ${wanted} is wanted: ${failure}` };
  const libraries = path.join(folder, LIBRARIES);
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

/** Unpacks beside `folder` and renames at the end, so that an interrupted run leaves nothing that is used. */
async function unpack(folder: string): Promise<string | null> {
  if (process.arch !== 'x64' || !existsSync(SOURCES) || !findOnPath('apt-get')) return 'no Debian on x64';
  const mirror = /^URIs: *(\S+)/m.exec(readFileSync(SOURCES, 'utf8'))?.[1];
  if (mirror === undefined) return `${SOURCES} names no server`;
  say(`unpacking the C library of Debian ${RELEASE} ...`);
  mkdirSync(path.dirname(folder), { recursive: true });
  const work = mkdtempSync(`${folder}.partial-`);
  try {
    const failure = await download(work, mirror);
    if (failure !== null) return failure;
    const root = path.join(work, 'root');
    for (const name of readdirSync(work).filter((each) => each.endsWith('.deb'))) {
      const { ok, reason } = await runCommand('dpkg-deb', ['-x', name, root], {
        timeoutMs: APT_MS,
        cwd: work,
      });
      if (!ok) return `dpkg-deb: ${reason}`;
    }
    renameSync(root, folder);
    return null;
  } catch (error) {
    // Another run was faster; its files are just as good.
    if (existsSync(folder)) return null;
    throw error;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function download(work: string, mirror: string): Promise<string | null> {
  const sources = path.join(work, 'newer.sources');
  const key = '/usr/share/keyrings/debian-archive-keyring.gpg';
  const lines = [
    'Types: deb',
    `URIs: ${mirror}`,
    `Suites: ${RELEASE}`,
    'Components: main',
    `Signed-By: ${key}`,
  ];
  writeFileSync(sources, `${lines.join('\n')}\n`);
  for (const name of ['lists/partial', 'cache/archives/partial'])
    mkdirSync(path.join(work, name), { recursive: true });
  writeFileSync(path.join(work, 'status'), '');
  // State of its own, and root's rights for its downloads: the lists of this machine stay as they are.
  const options = {
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State': work,
    'Dir::State::status': path.join(work, 'status'),
    'Dir::Cache': path.join(work, 'cache'),
    'APT::Sandbox::User': 'root',
  };
  const flags = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  for (const args of [['update'], ['download', ...PACKAGES]]) {
    const { ok, reason } = await runCommand('apt-get', [...flags, ...args], { timeoutMs: APT_MS, cwd: work });
    if (!ok) return `apt-get ${args[0]}: ${reason}`;
  }
  return null;
}
