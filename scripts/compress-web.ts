import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

/**
 * Compresses the built page once, as small as possible, so that no server does it per request. A file that would not
 * get smaller has no compressed variant; the gateway then sends the original. Fails if the scripts that the document itself
 * names, which the first view waits for, are over their limit.
 */
const WEB = fileURLToPath(new URL('../dist/web/', import.meta.url));
const FIRST_SCRIPTS = 40_000;
/** The document is completed for each request and not sent from its file. */
const COMPRESSIBLE = /\.(?:js|css|svg|json|txt)$/;
const COMPRESSED = /\.(?:br|gz)$/;

const files = readdirSync(WEB, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => path.join(entry.parentPath, entry.name));
for (const file of files) if (COMPRESSED.test(file)) rmSync(file);

let plainBytes = 0;
let gzipBytes = 0;
for (const file of files.filter((each) => COMPRESSIBLE.test(each))) {
  const plain = readFileSync(file);
  const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  const gzipped = gzipSync(plain, { level: 9 });
  keepIfSmaller(`${file}.br`, brotliCompressSync(plain, { params: quality }), plain);
  keepIfSmaller(`${file}.gz`, gzipped, plain);
  plainBytes += plain.length;
  gzipBytes += Math.min(gzipped.length, plain.length);
}
console.log(`web: ${kilobytes(plainBytes)}, ${kilobytes(gzipBytes)} gzipped`);

const named = readFileSync(path.join(WEB, 'index.html'), 'utf8').matchAll(
  /(?:src|href)="\.\/(assets\/[^"]+\.js)"/g,
);
const first = [...named].reduce((sum, [, file = '']) => sum + sentBytes(path.join(WEB, file)), 0);
console.log(`scripts before the first view: ${first} bytes in Brotli, of at most ${FIRST_SCRIPTS}`);
if (first > FIRST_SCRIPTS) {
  console.error('web: what the first view does not need is loaded by `later` (web/src/shared/later.tsx)');
  process.exitCode = 1;
}

function sentBytes(file: string): number {
  return statSync(existsSync(`${file}.br`) ? `${file}.br` : file).size;
}

function keepIfSmaller(file: string, bytes: Uint8Array, plain: Uint8Array): void {
  if (bytes.length < plain.length) writeFileSync(file, bytes);
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} KB`;
}
