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
const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Packages of one release of Debian, of which nothing is installed. */
export interface DebianPackages {
  release: string;
  architecture: 'amd64' | 'arm64';
  packages: readonly string[];
  /** The one file to take from them; default all. */
  only?: string;
}

/** Where they are unpacked. `folder` has the files at their paths below the root. */
export type Unpacked = { folder: string } | { not: string };

/**
 * Unpacks packages into a folder of the user's cache, later ones over earlier ones, unless it is there already. They are
 * unpacked beside it and renamed at the end, so that an interrupted run leaves nothing that is used.
 */
export async function unpackDebian(
  name: string,
  label: string,
  lots: readonly DebianPackages[],
): Promise<Unpacked> {
  const cache = path.join(process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache'), 'troupe');
  const folder = path.join(cache, name);
  if (existsSync(folder)) return { folder };
  if (process.arch !== 'x64' || !existsSync(SOURCES) || !findOnPath('apt-get'))
    return { not: 'no Debian on x64' };
  const mirror = /^URIs: *(\S+)/m.exec(readFileSync(SOURCES, 'utf8'))?.[1];
  if (mirror === undefined) return { not: `${SOURCES} names no server` };
  say(`unpacking ${label} ...`);
  mkdirSync(cache, { recursive: true });
  const work = mkdtempSync(`${folder}.partial-`);
  try {
    const root = path.join(work, 'root');
    mkdirSync(root);
    for (const [index, lot] of lots.entries()) {
      const place = path.join(work, String(index));
      mkdirSync(place);
      const failure = (await download(place, mirror, lot)) ?? (await unpackAll(place, root, lot.only));
      if (failure !== null) return { not: failure };
    }
    renameSync(root, folder);
    return { folder };
  } catch (error) {
    // Another run was faster; its files are just as good.
    if (existsSync(folder)) return { folder };
    throw error;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function unpackAll(place: string, root: string, only: string | undefined): Promise<string | null> {
  const one = 'dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" "./$3"';
  for (const name of readdirSync(place).filter((each) => each.endsWith('.deb'))) {
    const limits = { timeoutMs: APT_MS, cwd: place };
    const { ok, reason } =
      only === undefined
        ? await runCommand('dpkg-deb', ['-x', name, root], limits)
        : await runCommand('sh', ['-c', one, 'sh', name, root, only], limits);
    if (!ok) return `dpkg-deb: ${reason}`;
  }
  return null;
}

async function download(
  place: string,
  mirror: string,
  { release, architecture, packages }: DebianPackages,
): Promise<string | null> {
  const sources = path.join(place, 'lot.sources');
  const lines = [
    'Types: deb',
    `URIs: ${mirror}`,
    `Suites: ${release}`,
    'Components: main',
    `Signed-By: ${KEYS}`,
  ];
  writeFileSync(sources, `${lines.join('\n')}\n`);
  for (const name of ['lists/partial', 'cache/archives/partial'])
    mkdirSync(path.join(place, name), { recursive: true });
  writeFileSync(path.join(place, 'status'), '');
  // State of its own, and root's rights for its downloads: the lists of this machine stay as they are.
  const options = {
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State': place,
    'Dir::State::status': path.join(place, 'status'),
    'Dir::Cache': path.join(place, 'cache'),
    'APT::Sandbox::User': 'root',
    'APT::Architecture': architecture,
    'APT::Architectures::': architecture,
  };
  const flags = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  for (const args of [['update'], ['download', ...packages]]) {
    const { ok, reason } = await runCommand('apt-get', [...flags, ...args], {
      timeoutMs: APT_MS,
      cwd: place,
    });
    if (!ok) return `apt-get ${args[0]}: ${reason}`;
  }
  return null;
}
