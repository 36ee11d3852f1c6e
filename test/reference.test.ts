import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { referencePages } from '../scripts/write-reference.ts';

const ROOT = path.dirname(import.meta.dirname);

test('the reference says what the code says: npm run docs', async () => {
  const stale: string[] = [];
  for (const [file, text] of await referencePages())
    if (readFileSync(path.join(ROOT, file), 'utf8') !== text) stale.push(file);
  expect(stale).toEqual([]);
});
