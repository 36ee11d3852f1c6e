import { readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { TroupeError } from '../errors.ts';
import { readImageHeader } from '../facade/image-header.ts';
import type { NewAttachment } from '../troupe.ts';

/** What a file is by its name, where its bytes do not say. */
const TYPES: Readonly<Record<string, string>> = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.svg': 'image/svg+xml',
  '.pdf': 'application/pdf',
  '.zip': 'application/zip',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.csv': 'text/csv',
  '.html': 'text/html',
};

/** Files as attachments. Throws `event_invalid` for one that cannot be read. */
export function readFiles(paths: readonly string[]): Promise<NewAttachment[]> {
  return Promise.all(
    paths.map(async (path) => {
      const bytes = await readOrThrow(path);
      return { name: basename(path), mediaType: typeOf(path, bytes), data: bytes.toString('base64') };
    }),
  );
}

async function readOrThrow(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const reason =
      code === 'ENOENT' ? 'there is no such file' : code === 'EISDIR' ? 'it is a directory' : String(cause);
    throw new TroupeError(
      'event_invalid',
      `--attach: cannot read ${path}: ${reason}`,
      { file: path },
      { cause },
    );
  }
}

function typeOf(path: string, bytes: Buffer): string {
  const image = readImageHeader(bytes);
  if (image) return image.mediaType;
  return TYPES[extname(path).toLowerCase()] ?? (isText(bytes) ? 'text/plain' : 'application/octet-stream');
}

function isText(bytes: Buffer): boolean {
  return !bytes.includes(0) && Buffer.from(bytes.toString()).equals(bytes);
}
