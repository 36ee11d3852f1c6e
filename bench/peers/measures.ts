import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Processor time of all threads of this process, ms. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Of files in the folder and below it, once the write-ahead logs of databases are in them. */
export function storedBytes(folder: string): number {
  const paths = readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  for (const path of paths.filter((each) => each.endsWith('.db'))) {
    const database = new DatabaseSync(path);
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    database.close();
  }
  return paths.reduce((sum, path) => sum + (existsSync(path) ? statSync(path).size : 0), 0);
}

/** Text of exactly so many bytes; another for another seed. */
export function textOfBytes(bytes: number, seed: string): string {
  const line = (index: number) => `${seed} line ${index}: service-${index % 17} took ${index % 90} s.\n`;
  let text = '';
  for (let index = 0; text.length < bytes; index++) text += line(index);
  return text.slice(0, bytes);
}
