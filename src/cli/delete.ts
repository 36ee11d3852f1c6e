import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { TroupeError } from '../errors.ts';
import type { Client } from './client.ts';
import { type ClientOptions, connect } from './connect.ts';
import { count, print, printJson } from './output.ts';

interface DeleteOptions extends ClientOptions {
  /** False where none is wanted. */
  export?: string | false;
}

/** What is deleted is on the disk before, unless it is said that it need not be. */
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

/** Returns how many events are in the file, once it is on the disk. One that is there already is not written over. */
async function exportTo(client: Client, conversation: string, out: string): Promise<number> {
  const lines = client.export(conversation, { threads: true });
  // Read before the file is made, so that an unknown conversation leaves none behind.
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

/** A file is found again after a power cut once its directory is on the disk too. */
async function flushDirectory(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Passes on what may be cut anywhere, and counts the lines but those that begin a conversation. */
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
