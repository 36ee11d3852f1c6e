import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Documents } from '../../src/store/documents/documents.ts';

export interface Call {
  id: number;
  collection: 'events' | 'actors' | 'entries' | 'standings' | 'passages';
  name: string;
  args: unknown[];
}
export type Answer = { id: number } & ({ value: unknown } | { error: string });

/**
 * Documents in the memory of another process, like those of a database: this process then holds the runtime's memory
 * alone.
 */
export async function openDocumentsElsewhere(): Promise<Documents> {
  const host = fork(fileURLToPath(new URL('documents-host.ts', import.meta.url)), {
    serialization: 'advanced',
  });
  await once(host, 'message');
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let calls = 0;
  host.on('message', (answer: Answer) => {
    const caller = waiting.get(answer.id);
    waiting.delete(answer.id);
    if ('error' in answer) caller?.reject(new Error(answer.error));
    else caller?.resolve(answer.value);
  });

  function remote<K extends Call['collection']>(collection: K): Documents[K] {
    return new Proxy({} as Documents[K], {
      get:
        (_, name: string) =>
        (...args: unknown[]) =>
          new Promise((resolve, reject) => {
            const call: Call = { id: (calls += 1), collection, name, args };
            waiting.set(call.id, { resolve, reject });
            host.send(call);
          }),
    });
  }

  return {
    events: remote('events'),
    actors: remote('actors'),
    entries: remote('entries'),
    standings: remote('standings'),
    passages: remote('passages'),
    scrub: () => Promise.resolve([]),
    async close() {
      host.disconnect();
      await once(host, 'exit');
    },
  };
}
