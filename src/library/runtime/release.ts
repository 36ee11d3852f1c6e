import { readFileSync } from 'node:fs';

/** The version in the package file of this code, which is two folders up in `src` and in `dist`. */
export function releaseOf(): string {
  try {
    const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
    const { version } = JSON.parse(text) as { version?: unknown };
    return String(version);
  } catch {
    // A bundle without its package file.
    return 'unknown';
  }
}
