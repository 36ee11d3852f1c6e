import { createReadStream, existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Event } from '../../src/events/index.ts';
import { importTranscript } from '../../src/library/import/index.ts';
import { logged } from './log-player.ts';

export const DATA = fileURLToPath(new URL('../../../shared/data', import.meta.url));
export const HAS_DATA = existsSync(DATA);
export const ASSISTANT = 'assistant';

/**
 * The conversations of a file of `../shared/data`, as logs. Agent `assistant` stands for the transcript's assistant.
 */
export async function realLogs(file: string): Promise<Event[][]> {
  const logs = new Map<string, Event[]>();
  const source = createReadStream(path.resolve(DATA, file));
  for await (const { conversation, draft } of importTranscript(source, {
    agent: ASSISTANT as never,
    fileName: file,
  })) {
    // Recorded summaries are left out: ours are measured.
    if (!draft) continue;
    const log = logs.get(conversation) ?? [];
    logs.set(conversation, log);
    log.push(logged(draft, log.length + 1));
  }
  return [...logs.values()];
}

/** Distributes the assistant's turns among agents; a call and its results stay together. */
export function dealt(
  log: readonly Event[],
  agents: readonly string[],
  choose: (n: number) => number,
): Event[] {
  let speaker = 0;
  let turns = 0;
  return log.map((event) => {
    if (event.author.kind !== 'agent') {
      speaker = choose((turns += 1)) % agents.length;
      return event;
    }
    const id = agents[speaker] as string;
    return { ...event, author: { kind: 'agent', id, name: id } };
  });
}
