import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { TroupeError } from '../../base/errors.ts';
import type { PackageParts } from './project-files.ts';

type Manifest = Record<string, unknown>;

/** What would be written, and the field whose value would be replaced, if there is one. */
interface MergedPackage {
  text: string;
  conflict: string | null;
}

/** Adds what is missing to the package.json at `path`, or makes one. Throws `config_invalid` if it is not an object in JSON. */
export async function mergePackage(path: string, dir: string, parts: PackageParts): Promise<MergedPackage> {
  const given = await readManifest(path);
  const { type, ...sections } = parts;
  const start: Manifest = given ?? { name: nameFrom(dir), private: true, version: '0.0.0' };
  const merged: Manifest = { ...start, type };
  for (const [section, entries] of Object.entries(sections))
    merged[section] = { ...entries, ...(merged[section] as object | undefined) };
  const isNew = given === null || isPlaceholderTest(given);
  if (isNew) (merged['scripts'] as Manifest)['test'] = parts.scripts['test'];
  const main = given?.['main'];
  const isFree = isNew && !existsSync(join(dir, typeof main === 'string' ? main : 'index.js'));
  const isOther = !isFree && given?.['type'] !== type;
  const conflict = isOther ? `package.json (its "type" must become "${type}")` : null;
  return { text: `${JSON.stringify(merged, null, 2)}\n`, conflict };
}

/** `npm init` writes a test that fails. Until that is replaced, the type of the package is nobody's choice. */
function isPlaceholderTest(given: Manifest): boolean {
  const scripts = given['scripts'] as Manifest | undefined;
  const test = scripts?.['test'];
  return typeof test === 'string' && test.includes('no test specified');
}

async function readManifest(path: string): Promise<Manifest | null> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Manifest;
    throw new Error('it is not an object');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `cannot add to ${path}: ${reason}; mend it, or choose another directory`;
    throw new TroupeError('config_invalid', message, { path }, { cause });
  }
}

/** A name that npm accepts. */
function nameFrom(dir: string): string {
  const name = basename(dir)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]/g, '-')
    .slice(0, 100);
  return /^[a-z0-9]/.test(name) && name !== 'troupe' ? name : 'my-troupe';
}
