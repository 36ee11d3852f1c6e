import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { TroupeError } from '../../errors.ts';
import type { Client } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { count, print, printJson } from '../render/output.ts';

interface DeleteOptions extends ClientOptions {
  /** False with `--no-export`. */
  export?: string | false;
}

/** Deletes a conversation after its export is on disk, or without one with `--no-export`. */
export async function deleteConversation(conversation: string, options: DeleteOptions): Promise<void> {
  const { export: out, json } = options;
  if (out === undefined) {
    const message = 'say where it is kept with --export FILE, or that it is not with --no-export';
    throw new TroupeError('event_invalid', message, { path: 'export' });
  }
  const client = await connect(options, { needs: 'data' });
  try {
    const exported = out === false ? 'none' : await exportTo(client, conversation, out);
    const deleted = await client.delete(conversation, exported);
    if (json) return printJson({ conversation, out: out === false ? null : out, ...deleted });
    const kept = out === false ? '' : `; ${count(Number(exported), 'event')} kept in ${out}`;
    const threads = deleted.conversations > 1 ? ` with ${count(deleted.conversations - 1, 'thread')}` : '';
    print(`${conversation} is deleted${threads}${kept}`);
  } finally {
    await client.close();
  }
}

/** Returns the number of events in the file once it is on disk. An existing file is not overwritten. */
async function exportTo(client: Client, conversation: string, out: string): Promise<number> {
  const lines = client.export(conversation, { threads: true });
  // Reads the first chunk before it creates the file, so that an unknown conversation leaves none behind.
  const first = await lines.next();
  const counter = { events: 0 };
  try {
    const file = createWriteStream(out, { flags: 'wx', mode: 0o600, flush: true });
    await pipeline(counted(first.done ? '' : first.value, lines, counter), file);
    await flushDirectory(dirname(resolve(out)));
  } catch (cause) {
    if (cause instanceof TroupeError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `cannot write ${out}: ${reason}; nothing is deleted`;
    throw new TroupeError('data_unwritable', message, { out }, { cause });
  }
  return counter.events;
}

/** A file survives a power cut only once its directory is on disk, too. */
async function flushDirectory(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Passes on chunks that may be cut anywhere, and counts the lines except the headers of conversations. */
async function* counted(
  first: string,
  rest: AsyncGenerator<string>,
  counter: { events: number },
): AsyncGenerator<string> {
  let line = '';
  for (let next = first; ;) {
    const lines = (line + next).split('\n');
    line = lines.pop() ?? '';
    counter.events += lines.filter((each) => each !== '' && !each.startsWith('{"troupe":')).length;
    yield next;
    const { done, value } = await rest.next();
    if (done) return;
    next = value as string;
  }
}
