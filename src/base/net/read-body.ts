import { pipeline, Readable, type Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip } from 'node:zlib';

export const ACCEPTED_ENCODINGS = 'gzip, br';

/** `isCut`: the body was longer than the limit. */
export interface ReadBody {
  bytes: Buffer;
  isCut: boolean;
}

/** A content coding that was not asked for, or several stacked ones. */
export class UnknownEncoding extends Error {}

/** Reads at most `maxBytes`, both received and decoded: a small body may decode to a very large one. */
export async function readBody(body: Readable, encoding: string, maxBytes: number): Promise<ReadBody> {
  const coming = { isCut: false };
  const decoder = decoderOf(encoding);
  const source = Readable.from(upTo(body, maxBytes, coming), { objectMode: false });
  // The loop below receives every error of the pipeline. Without a decoder there is nothing to join.
  const stream = decoder ? pipeline(source, decoder, () => undefined) : source;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxBytes) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), isCut: coming.isCut || size > maxBytes };
}

async function* upTo(body: AsyncIterable<Buffer>, maxBytes: number, seen: { isCut: boolean }) {
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    seen.isCut = size > maxBytes;
    yield seen.isCut ? chunk.subarray(0, chunk.length - (size - maxBytes)) : chunk;
    if (seen.isCut) return;
  }
}

/** Decoders return what a truncated body contains, as browsers do. */
function decoderOf(encoding: string): Transform | null {
  const name = encoding.trim().toLowerCase();
  if (name === '' || name === 'identity') return null;
  if (name === 'gzip' || name === 'x-gzip') return createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
  if (name === 'br') return createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH });
  throw new UnknownEncoding();
}
