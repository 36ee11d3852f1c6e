import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { specified } from './support/specified.ts';

const ROOT = path.dirname(import.meta.dirname);
const ROWS = specified();

test('docs/contributing/specifications.md has all 130 behaviours, each once', () => {
  expect(ROWS.map(({ number }) => number)).toEqual(Array.from({ length: 130 }, (_, index) => index + 1));
  expect(new Set(ROWS.map(({ behaviour }) => behaviour)).size).toBe(130);
});

test('a behaviour is there, or otherwise for a reason', () => {
  for (const { number, state, reason } of ROWS) {
    expect(['there', 'otherwise'], `row ${number}`).toContain(state);
    if (state === 'otherwise') expect(reason.length, `the reason of row ${number}`).toBeGreaterThan(40);
  }
});

test('each row names a test that exists', () => {
  const missing = ROWS.filter(({ file, title }) => {
    const full = path.join(ROOT, file);
    return !existsSync(full) || !titlesIn(readFileSync(full, 'utf8')).some((name) => name.startsWith(title));
  });
  expect(missing).toEqual([]);
});

/** The names of the tests in a file. */
function titlesIn(text: string): string[] {
  const calls = text.matchAll(
    /\b(?:test|it|describe|\w+Test)(?:\.\w+)*\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g,
  );
  return [...calls].map(([, , name = '']) => name.replaceAll(/\\(.)/g, '$1'));
}
