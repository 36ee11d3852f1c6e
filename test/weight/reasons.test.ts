import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { readRecord } from '../../turn-weight/record-files.ts';

const DOC = path.join(import.meta.dirname, '../../docs/contributing/turn.md');

test('docs/contributing/turn.md says of each file that a plain turn executes why, and of no other', () => {
  const executed = [...readRecord().functions].flatMap(([name, scenes]) =>
    scenes.includes('plain') ? [name.split(' ')[0]] : [],
  );
  const rows = [...readFileSync(DOC, 'utf8').matchAll(/^\| `([^`]+\.ts)` +\| (.+) \|$/gm)];
  expect(new Set(rows.map(([, file]) => file))).toEqual(new Set(executed));
  for (const [, file, reason = ''] of rows) expect(reason.trim().length, file).toBeGreaterThan(10);
});
