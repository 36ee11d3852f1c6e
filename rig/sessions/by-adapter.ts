import { DEFAULT_TENANT, type PromptMessage, type TurnId } from '../../src/events/index.ts';
import { createClaudeCode } from '../../packages/agents/src/claude-code/claude-code.ts';
import { createCodex } from '../../packages/agents/src/codex/codex.ts';
import type { ModelRequest, Provider, SessionMark } from '../../src/providers/provider.ts';
import type { Cli } from './fake-vendor.ts';
import { TALK, type Talk, type TalkOptions } from './talk.ts';

/** The provider alone: from `stream` to its `done`. */
export function talkByAdapter(cli: Cli, { url, dir }: TalkOptions): Talk {
  const settings = { home: dir, env: {}, baseUrl: url, apiKey: TALK.key, builtinTools: [] };
  const provider: Provider =
    cli === 'codex' ? createCodex({ ...settings, sandbox: 'read-only' }) : createClaudeCode(settings);
  const { signal } = new AbortController();
  let mark: SessionMark | null = null;
  let turn = 0;

  function requestOf(words: string): ModelRequest {
    turn += 1;
    const asked: PromptMessage = { role: 'user', content: words, seqs: [] };
    return {
      model: TALK.models[cli],
      messages: mark ? [asked] : [{ role: 'system', content: TALK.system, seqs: [] }, asked],
      tools: [],
      breakpoints: [],
      maxOutputTokens: TALK.maxOutputTokens,
      cacheKey: `${DEFAULT_TENANT}/talk/cli`,
      session: mark ? { kind: 'resume', mark } : { kind: 'start' },
      trace: { conversation: 'talk', agent: 'cli', turn: `talk:cli:${turn}` as TurnId, step: 1, call: 1 },
    };
  }

  return {
    async say(words) {
      let answer = '';
      for await (const event of provider.stream(requestOf(words), { signal })) {
        if (event.type === 'text') answer += event.delta;
        if (event.type === 'failed') throw new Error(`${event.error.code}: ${event.error.message}`);
        if (event.type !== 'done') continue;
        mark = event.session ?? null;
        return answer;
      }
      throw new Error('the stream did not end with done');
    },
    [Symbol.asyncDispose]: async () => provider.close?.(),
  };
}
