import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { TroupeError } from '../../base/errors.ts';
import type { Client } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { count, print, printJson } from '../render/output.ts';
import { readExport } from './export.ts';

interface DeleteOptions extends ClientOptions {
  /** False with `--no-export`. */
  export?: string | false;
}

/** Deletes a conversation after its export is on disk, or without one with `--no-export`. */
export async function deleteConversation(conversation: string, options: DeleteOptions): Promise<void> {
  const { export: out, json } = options;
  if (out === undefined) {
    const message = 'keep a copy with --export FILE, or delete without one with --no-export';
    throw new TroupeError('event_invalid', message, { path: 'export' });
  }
  const client = await connect(options, { needs: 'data' });
  try {
    const exported = out === false ? 'none' : await exportTo(client, conversation, out);
    const deleted = await client.delete(conversation, exported);
    if (json) return printJson({ conversation, out: out === false ? null : out, ...deleted });
    const kept = out === false ? '' : `; ${count(Number(exported), 'event')} saved to ${out}`;
    const threads = deleted.conversations > 1 ? ` with ${count(deleted.conversations - 1, 'thread')}` : '';
    print(`${conversation} is deleted${threads}${kept}`);
  } finally {
    await client.close();
  }
}

/** Returns the number of events in the file once it is on disk. An existing file is not overwritten. */
async function exportTo(client: Client, conversation: string, out: string): Promise<number> {
  let events = 0;
  let rest = '';
  const source = await readExport(client.export(conversation, { threads: true }), (chunk) => {
    // A chunk may end within a line. Headers of conversations are no events.
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    events += lines.filter((each) => each !== '' && !each.startsWith('{"troupe":')).length;
  });
  try {
    const file = createWriteStream(out, { flags: 'wx', mode: 0o600, flush: true });
    await pipeline(source, file);
    await flushDirectory(dirname(resolve(out)));
  } catch (cause) {
    if (cause instanceof TroupeError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `cannot write ${out}: ${reason}; nothing is deleted`;
    throw new TroupeError('data_unwritable', message, { out }, { cause });
  }
  return events;
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
