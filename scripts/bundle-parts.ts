import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readRanks, SPLIT } from '../src/base/o200k-ranks.ts';

/**
 * Puts into `dist` what Troupe uses of two packages, in place of the modules that import them, so that an install has neither:
 * `marked`, one file without dependencies, and of `gpt-tokenizer` the vocabulary that Troupe counts with. The whole package, with
 * every encoding in three formats, is fifteen times as large.
 */
const ROOT = path.dirname(import.meta.dirname);
const DIST = path.join(ROOT, 'dist');

const { lengths, bytes } = readRanks();
const decoded = (part: Uint8Array) => `Buffer.from('${Buffer.from(part).toString('base64')}', 'base64')`;
const module = `export const SPLIT = ${String(SPLIT)};
export const readRanks = () => ({ lengths: ${decoded(lengths)}, bytes: ${decoded(bytes)} });
`;
writeFileSync(path.join(DIST, 'base/o200k-ranks.js'), module);
rmSync(path.join(DIST, 'base/o200k-ranks.js.map'));
copyFileSync(
  path.join(ROOT, 'node_modules/marked/lib/marked.esm.js'),
  path.join(DIST, 'library/projection/markdown-lexer.js'),
);
rmSync(path.join(DIST, 'library/projection/markdown-lexer.js.map'));
for (const [of, beside] of [
  ['gpt-tokenizer', 'base/o200k-ranks'],
  ['marked', 'library/projection/markdown-lexer'],
] as const)
  copyFileSync(path.join(ROOT, 'node_modules', of, 'LICENSE'), path.join(DIST, `${beside}.LICENSE`));
