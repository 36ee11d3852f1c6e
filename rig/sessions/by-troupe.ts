import { join } from 'node:path';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { Cli } from './fake-vendor.ts';
import { TALK, type Talk, type TalkOptions } from './talk.ts';

const AGENT = 'cli';
const PERSON = { kind: 'user', id: 'u1', name: 'Ana' } as const;

/** All of Troupe, embedded, with its data on disk: from `send` to the `turn.done` that a watcher sees. */
export async function talkByTroupe(cli: Cli, { url, dir }: TalkOptions): Promise<Talk> {
  const troupe = await createTroupe(
    {
      agents: [
        {
          id: AGENT,
          provider: cli,
          model: TALK.models[cli],
          instructions: TALK.system,
          maxOutputTokens: TALK.maxOutputTokens,
          baseUrl: url,
          apiKeyEnv: 'KEY_OF_RIG',
        },
      ],
    },
    {
      data: join(dir, 'data'),
      env: { ...process.env, KEY_OF_RIG: TALK.key },
      onWarning: () => undefined,
    },
  );
  let answer = '';
  let over = Promise.withResolvers<string>();
  troupe.watch((note) => {
    if (note.type !== 'event' || note.event.author.id !== AGENT) return;
    const { event } = note;
    if (event.kind === 'message') answer = event.body.content;
    if (event.kind === 'turn.done') over.resolve(answer);
    if (event.kind === 'turn.failed') over.reject(new Error(`${event.body.code}: ${event.body.message}`));
  });

  return {
    async say(words) {
      answer = '';
      over = Promise.withResolvers();
      await troupe.send('talk', { author: PERSON, content: words, to: [AGENT] });
      return over.promise;
    },
    [Symbol.asyncDispose]: () => troupe.close(),
  };
}
