import { lstatSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';

export interface Weight {
  bytes: number;
  packages: number;
}

/** An entry of `node_modules/.package-lock.json`. */
interface Installed {
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

/** Size of a block: files take whole ones. */
const BLOCK = 4_096;

/**
 * What an install of `name` put into `app`: in total, for `name` itself, and for each of its dependencies the packages
 * that nothing else needs, heaviest first. The parts do not add up to the total, because some packages are needed twice.
 */
export function weighInstall(app: string, name: string): { total: Weight; parts: [string, Weight][] } {
  const lock = readFileSync(path.join(app, 'node_modules/.package-lock.json'), 'utf8');
  const { packages } = JSON.parse(lock) as { packages: Record<string, Installed> };
  const root = `node_modules/${name}`;
  const sizes = new Map(Object.keys(packages).map((place) => [place, sizeOf(path.join(app, place))]));
  const total = weightOf(sizes.keys(), sizes);
  const all = reachable(packages, root, null);
  const direct = Object.keys(packages[root]?.dependencies ?? {});
  const parts = direct.map((dependency): [string, Weight] => {
    const without = reachable(packages, root, dependency);
    return [
      dependency,
      weightOf(
        [...all].filter((place) => !without.has(place)),
        sizes,
      ),
    ];
  });
  parts.push([`${name} itself`, weightOf([root], sizes)]);
  return { total, parts: parts.toSorted(([, one], [, other]) => other.bytes - one.bytes) };
}

function weightOf(places: Iterable<string>, sizes: ReadonlyMap<string, number>): Weight {
  const own = [...places].map((place) => sizes.get(place) ?? 0);
  return { bytes: own.reduce((sum, size) => sum + size, 0), packages: own.length };
}

/** Places of the packages that `root` needs, without one of its direct dependencies. */
function reachable(packages: Record<string, Installed>, root: string, omitted: string | null): Set<string> {
  const found = new Set([root]);
  for (const place of found) {
    const { dependencies, optionalDependencies, peerDependencies } = packages[place] ?? {};
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      const at = place === root && name === omitted ? null : resolveFrom(packages, place, name);
      if (at !== null) found.add(at);
    }
  }
  return found;
}

/** Where Node finds `name` from the package at `place`; null if it is not installed. */
function resolveFrom(packages: Record<string, Installed>, place: string, name: string): string | null {
  for (let from = place; ; from = from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/')))) {
    const at = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
    if (packages[at]) return at;
    if (from === '') return null;
  }
}

/** Bytes on the disk, without the packages inside it. */
function sizeOf(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name === 'node_modules') continue;
    const file = path.join(folder, entry.name);
    if (entry.isDirectory()) bytes += BLOCK + sizeOf(file);
    else bytes += Math.ceil(lstatSync(file).size / BLOCK) * BLOCK;
  }
  return bytes;
}
