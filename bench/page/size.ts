import { existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { BUILT_PAGE } from '../../src/http/page/page.ts';

/** Bytes in Brotli of the scripts that the document itself names: those that the first view waits for. */
export function firstScripts(folder = BUILT_PAGE): number {
  const document = readFileSync(path.join(folder, 'index.html'), 'utf8');
  const named = document.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g);
  return [...named].reduce((sum, [, file = '']) => sum + sentBytes(path.join(folder, file)), 0);
}

function sentBytes(file: string): number {
  return statSync(existsSync(`${file}.br`) ? `${file}.br` : file).size;
}
