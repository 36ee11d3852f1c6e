import { readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A file of the built page, as it is sent. */
interface WebFile {
  bytes: Uint8Array<ArrayBuffer>;
  type: string;
  /** Set for files that were compressed when the page was built. */
  encoding: 'br' | 'gzip' | null;
}

/** The same path from `src/http/page` in a checkout and from `dist/http/page` in the package. */
export const BUILT_PAGE = fileURLToPath(new URL('../../../dist/web/', import.meta.url));

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};
/** A file name, optionally in `assets`: never outside the folder, hidden or too long. */
const WEB_PATH = /^(?:assets\/)?[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;
/** The smaller first. */
const COMPRESSED = [
  { encoding: 'br', suffix: '.br' },
  { encoding: 'gzip', suffix: '.gz' },
] as const;

/** Null for a missing file, or one that does not belong to a page. */
export async function readWebFile(
  folder: string,
  path: string,
  accepted: ReadonlySet<string> = new Set(),
): Promise<WebFile | null> {
  const type = TYPES[extname(path)];
  if (type === undefined || !WEB_PATH.test(path)) return null;
  const file = join(folder, path);
  for (const { encoding, suffix } of COMPRESSED) {
    const bytes = accepted.has(encoding) ? await readIfThere(file + suffix) : null;
    if (bytes) return { bytes, type, encoding };
  }
  const bytes = await readIfThere(file);
  return bytes && { bytes, type, encoding: null };
}

async function readIfThere(file: string): Promise<Uint8Array<ArrayBuffer> | null> {
  try {
    return (await stat(file)).isFile() ? new Uint8Array(await readFile(file)) : null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
}
