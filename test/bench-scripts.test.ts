import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const BENCH = path.join(path.dirname(import.meta.dirname), 'bench');

test('every script that a benchmark starts by its name exists', () => {
  const sources = readdirSync(BENCH).filter((file) => file.endsWith('.ts'));
  const text = sources.map((file) => readFileSync(path.join(BENCH, file), 'utf8')).join('\n');
  const scripts = [...text.matchAll(/\bmeasure\('([^']+)'/g)].map(([, name]) => `${name}.ts`);
  expect(scripts.length).toBeGreaterThan(15);
  expect(scripts.filter((script) => !existsSync(path.join(BENCH, script)))).toEqual([]);
});
