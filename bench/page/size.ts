import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { BUILT_PAGE } from '../../src/http/page/web-folder.ts';

/** Gzipped size of each file of the built page, in bytes. Files that are compressed already do not count. */
export function pageSizes(folder = BUILT_PAGE): { file: string; bytes: number }[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => statSync(path.join(folder, file)).isFile() && !/\.(br|gz|map)$/.test(file))
    .map((file) => ({ file, bytes: gzipSync(readFileSync(path.join(folder, file)), { level: 9 }).length }))
    .toSorted((a, b) => b.bytes - a.bytes);
}
