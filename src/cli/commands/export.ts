import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { TroupeError } from '../../base/errors.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { count, print, printJson } from '../render/output.ts';

interface ExportOptions extends ClientOptions {
  out?: string;
  html?: boolean;
}

export async function exportConversation(conversation: string, options: ExportOptions): Promise<void> {
  const { html, out, json } = options;
  const client = await connect(options, { needs: 'data' });
  try {
    let lines = 0;
    const chunks = client.export(conversation, { format: html ? 'html' : 'jsonl' });
    const source = await readExport(chunks, (chunk) => (lines += chunk.split('\n').length - 1));
    if (out === undefined) return await pipeline(source, process.stdout, { end: false });
    await pipeline(source, createWriteStream(out, { mode: 0o600 })).catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new TroupeError('data_unwritable', `cannot write ${out}: ${reason}`, { out }, { cause });
    });
    if (json) printJson({ conversation, out, lines });
    else print(`${count(lines, 'line')} written to ${out}`);
  } finally {
    await client.close();
  }
}

/**
 * Passes on the chunks of an export, and each to `onChunk`. Reads the first one at once: callers create their file
 * afterwards, so that an unknown conversation leaves none behind.
 */
export async function readExport(
  chunks: AsyncGenerator<string>,
  onChunk: (chunk: string) => void,
): Promise<AsyncGenerator<string>> {
  const first = await chunks.next();
  async function* all(): AsyncGenerator<string> {
    for (let next = first; !next.done; next = await chunks.next()) {
      onChunk(next.value);
      yield next.value;
    }
  }
  return all();
}
