import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { MUTANTS } from '../../sim/mutants.ts';

const SRC = path.resolve(import.meta.dirname, '../../src');

test.each(MUTANTS)('$name: every quoted text is in its file exactly once', ({ edits }) => {
  for (const { file, find } of edits) {
    const times = readFileSync(path.join(SRC, file), 'utf8').split(find).length - 1;
    expect([file, find, times]).toEqual([file, find, 1]);
  }
});
