import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERROR_CODES } from '../../src/base/errors.ts';

test('the documentation contains each error code', () => {
  const pages = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.md'),
  );
  const files = pages.map((name) => `docs/${name}`);
  const text = files.map((file) => readFileSync(file, 'utf8')).join('\n');
  expect(ERROR_CODES.filter((code) => !text.includes(`\`${code}\``))).toEqual([]);
});
