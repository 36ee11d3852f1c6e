import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TroupeOptions } from '../../src/library/runtime/create-troupe.ts';
import { MONGODB_AND_REDIS, type Place, POSTGRES_ALONE } from './places.ts';

/** Where troupes store: a directory of SQLite, or servers. */
export interface Storage {
  options: TroupeOptions;
  /** Whether a second process can work on it. */
  isShared: boolean;
  /** Everything that is stored there, also what was removed and not overwritten. */
  text(): Promise<string>;
  close(): Promise<void>;
}

export async function directory(): Promise<Storage> {
  const folder = await mkdtemp(path.join(tmpdir(), 'troupe-storage-'));
  return {
    options: { data: folder },
    isShared: false,
    async text() {
      const all = await readdir(folder, { recursive: true, withFileTypes: true });
      const files = all.filter((each) => each.isFile());
      const texts = files.map(async ({ parentPath, name }) =>
        readFile(path.join(parentPath, name), 'latin1'),
      );
      return (await Promise.all(texts)).join('\n');
    },
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

let opened = 0;

function servers(place: Place): Storage {
  const name = `storage_${process.pid}_${Date.now().toString(36)}_${(opened += 1)}`;
  return {
    options: place.options(name),
    isShared: true,
    text: () => place.text(name),
    close: () => place.drop(new Set([name])),
  };
}

/** Each with the servers that are missing, or null, and what opens a new one. */
export const STORAGES: readonly (readonly [string, string | null, () => Promise<Storage>])[] = [
  ['SQLite', null, directory],
  ...[MONGODB_AND_REDIS, POSTGRES_ALONE].map(
    (place) => [place.title, place.missing, () => Promise.resolve(servers(place))] as const,
  ),
];
