import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A directory for one test, open to all users, because some tests drop root rights. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'troupe-store-'));
  chmodSync(dir, 0o777);
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
