import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Context, Next } from 'hono';
import { codingsFor } from './codings.ts';

/** A smaller answer fits into one packet anyway. */
const MIN_BYTES = 1_024;
/** The cheapest levels: higher ones take several times the CPU for a tenth of the bytes. */
const BROTLI_QUALITY = 1;
const GZIP_LEVEL = 1;

type Compress = (bytes: Uint8Array) => Promise<Uint8Array<ArrayBuffer>>;

const brotli = promisify(brotliCompress);
const gzipped = promisify(gzip);

/** The smaller first. */
const COMPRESSIONS: readonly [encoding: string, compress: Compress][] = [
  [
    'br',
    (bytes) =>
      brotli(bytes, {
        params: {
          [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
          [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
          [constants.BROTLI_PARAM_SIZE_HINT]: bytes.byteLength,
        },
      }),
  ],
  ['gzip', (bytes) => gzipped(bytes, { level: GZIP_LEVEL })],
];

/**
 * Compresses JSON answers for clients that accept it. Streams and downloads pass through as they come. So does an answer with
 * `no-store`, which holds a secret: the length of a compressed answer tells whether words beside the secret resemble it.
 */
export async function compressJson(context: Context, next: Next): Promise<void> {
  await next();
  const answer = context.res;
  const { status, headers } = answer;
  if (status !== 304 && !isCompressible(headers)) return;
  headers.append('vary', 'accept-encoding');
  const accepted = codingsFor(context);
  const [encoding, compress] = COMPRESSIONS.find(([name]) => accepted.has(name)) ?? [];
  if (!encoding || !compress || !answer.body || context.req.method === 'HEAD') return;
  const plain = new Uint8Array(await answer.arrayBuffer());
  const isSmall = plain.byteLength < MIN_BYTES;
  const bytes = isSmall ? plain : await compress(plain);
  context.res = new Response(bytes, { status, headers });
  if (isSmall) return;
  context.res.headers.set('content-encoding', encoding);
  context.res.headers.delete('content-length');
}

function isCompressible(headers: Headers): boolean {
  return (
    headers.get('content-type')?.startsWith('application/json') === true &&
    headers.get('cache-control')?.includes('no-store') !== true &&
    !headers.has('content-encoding')
  );
}
