import { createReadStream } from 'node:fs';
import path from 'node:path';
import type { Event } from '../src/events/index.ts';
import { importTranscript } from '../src/library/import/index.ts';
import { ASSISTANT, DATA } from '../test/support/real-logs.ts';
import { logged } from '../test/support/log-player.ts';

/**
 * The first conversation of a file of `../shared/data` with its original times, which `realLogs` replaces by even
 * ones.
 */
export async function timedLog(file: string): Promise<Event[]> {
  const log: Event[] = [];
  let first: string | null = null;
  const source = createReadStream(path.join(DATA, file));
  for await (const { conversation, draft, at } of importTranscript(source, {
    agent: ASSISTANT as never,
    fileName: file,
  })) {
    first ??= conversation;
    if (conversation !== first) break;
    // Recorded summaries are left out: ours are measured.
    if (draft) log.push(logged(draft, log.length + 1, at ?? log.at(-1)?.at));
  }
  return log;
}
