import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readRanks, SPLIT } from '../src/base/o200k-ranks.ts';

/**
 * Writes the vocabulary that Troupe counts with into `dist`, in place of the module that reads it from `gpt-tokenizer`. The
 * whole package, with every encoding in three formats, is fifteen times as large.
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
  path.join(ROOT, 'node_modules/gpt-tokenizer/LICENSE'),
  path.join(DIST, 'base/o200k-ranks.LICENSE'),
);
