import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { TroupeError } from '../errors.ts';
import { type ClientOptions, connect } from './connect.ts';
import { count, print, printJson } from './output.ts';

interface ExportOptions extends ClientOptions {
  out?: string;
  html?: boolean;
}

export async function exportConversation(conversation: string, options: ExportOptions): Promise<void> {
  const client = await connect(options, { needs: 'data' });
  try {
    const lines = client.export(conversation, { format: options.html ? 'html' : 'jsonl' });
    // Read before the file is made, so that an unknown conversation leaves none behind.
    const first = await lines.next();
    const counter = { lines: 0 };
    const source = counted(first.done ? '' : first.value, lines, counter);
    const { out, json } = options;
    if (out === undefined) return await pipeline(source, process.stdout, { end: false });
    await pipeline(source, createWriteStream(out, { mode: 0o600 })).catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new TroupeError('data_unwritable', `cannot write ${out}: ${reason}`, { out }, { cause });
    });
    if (json) printJson({ conversation, out, lines: counter.lines });
    else print(`${count(counter.lines, 'line')} written to ${out}`);
  } finally {
    await client.close();
  }
}

async function* counted(
  first: string,
  rest: AsyncGenerator<string>,
  counter: { lines: number },
): AsyncGenerator<string> {
  for (let next = first; ;) {
    counter.lines += next.split('\n').length - 1;
    yield next;
    const { done, value } = await rest.next();
    if (done) return;
    next = value as string;
  }
}
