import { constants } from 'node:fs';
import { type FileHandle, open, realpath } from 'node:fs/promises';
import { resolve, sep } from 'node:path';

/** The text of a file, or why there is none. `absent`: no file of that name. */
type FileText = { kind: 'text'; text: string } | { kind: 'absent' } | { kind: 'refused'; problem: string };

/**
 * Reads a text file in a directory. Refuses a path or a symbolic link that leads out of the directory, anything but a
 * regular file, more than `maxBytes`, and text that is not UTF-8. `problem` names the file, never its directory. Never
 * rejects.
 */
export async function readInside(dir: string, name: string, maxBytes: number): Promise<FileText> {
  const refused = (problem: string): FileText => ({ kind: 'refused', problem: `${name} ${problem}` });
  let file: FileHandle | null = null;
  try {
    const root = await realpath(dir);
    const wanted = resolve(root, name);
    if (!isWithin(root, wanted)) return refused('is outside of its directory');
    const found = await realpath(wanted);
    if (!isWithin(root, found)) return refused('is a link that leads out of its directory');
    // Without O_NONBLOCK, opening a named pipe would wait for a writer. O_NOFOLLOW refuses a link put here after the
    // check.
    file = await open(found, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    if (!(await file.stat()).isFile()) return refused('is no file');
    const bytes = await readUpTo(file, maxBytes + 1);
    if (bytes.length > maxBytes) return refused(`is larger than ${maxBytes} bytes`);
    return { kind: 'text', text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'absent' };
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return refused('is not UTF-8');
    return refused(`cannot be read (${code ?? 'unknown error'})`);
  } finally {
    await file?.close();
  }
}

function isWithin(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);
}

/** Reads up to the limit instead of the size of the file, which may change meanwhile. */
async function readUpTo(file: FileHandle, most: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(most);
  let length = 0;
  while (length < most) {
    const { bytesRead } = await file.read(bytes, length, most - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.subarray(0, length);
}
