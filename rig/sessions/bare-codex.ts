import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startAppServer } from '../../packages/agents/src/codex/app-server.ts';
import { codexEnv, findCodex, writeHome } from '../../packages/agents/src/codex/config.ts';
import { ThreadAnswer } from '../../packages/agents/src/codex/protocol.ts';
import { DEFAULT_REPLY_LIMITS } from '../../src/providers/reply-limits.ts';
import { systemClock } from '../../src/base/clock.ts';
import { TALK, type Talk, type TalkOptions } from './talk.ts';

/** The fields that we read of its notifications. */
interface Note {
  delta?: string;
  turn?: { status: string; error: { message: string } | null };
}

const START_TIMEOUT_MS = 30_000;

/**
 * One thread of `codex app-server` in its own protocol, with Troupe's configuration. Apart from the pipes to the
 * process, nothing of Troupe runs.
 */
export async function talkToBareCodex({ url, dir }: TalkOptions): Promise<Talk> {
  const cwd = join(dir, 'work');
  mkdirSync(cwd, { recursive: true });
  const sandbox = 'read-only';
  const settings = { home: dir, env: {}, baseUrl: url, apiKey: TALK.key, builtinTools: [], sandbox } as const;
  const home = writeHome(settings);
  const env = codexEnv(settings, home);
  const server = await startAppServer({
    codex: findCodex(),
    env,
    cwd: home,
    clock: systemClock,
    startTimeoutMs: START_TIMEOUT_MS,
    limits: DEFAULT_REPLY_LIMITS,
  });
  const begun = await server.call('thread/start', {
    cwd,
    approvalPolicy: 'never',
    sandbox,
    model: TALK.models.codex,
    baseInstructions: TALK.system,
    environments: [],
  });
  const threadId = ThreadAnswer.parse(begun).thread.id;
  let answer = '';
  let over = Promise.withResolvers<string>();
  server.listen(threadId, {
    notified(method, params) {
      const { delta = '', turn } = params as Note;
      if (method === 'item/agentMessage/delta') answer += delta;
      if (method !== 'turn/completed') return;
      if (turn?.status === 'completed') over.resolve(answer);
      else over.reject(new Error(`Codex failed: ${turn?.error?.message}`));
    },
    called: () => Promise.reject(new Error('it was given no tools')),
    lost: (reason) => over.reject(reason),
  });

  return {
    async say(words) {
      answer = '';
      over = Promise.withResolvers();
      const input = [{ type: 'text', text: words, text_elements: [] }];
      await server.call('turn/start', { threadId, input, environments: [] });
      return over.promise;
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}
