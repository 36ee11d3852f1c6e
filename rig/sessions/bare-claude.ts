import { randomUUID } from 'node:crypto';
import {
  loadAgentSdk,
  type SdkMessage,
  type SdkUserMessage,
} from '../../packages/agents/src/claude-code/agent-sdk.ts';
import { createInbox, launchOptions } from '../../packages/agents/src/claude-code/processes.ts';
import { TALK, type Talk, type TalkOptions } from './talk.ts';

/** Claude Code as its own SDK runs it, with Troupe's options and nothing else of Troupe. */
export async function talkToBareClaude({ url, dir }: TalkOptions): Promise<Talk> {
  const sdk = await loadAgentSdk();
  const settings = { home: dir, env: {}, baseUrl: url, apiKey: TALK.key, builtinTools: [] };
  const { system, maxOutputTokens, models } = TALK;
  const launch = { model: models['claude-code'], tools: [], maxOutputTokens, system };
  const session = { kind: 'new', id: randomUUID() } as const;
  const said = createInbox<SdkUserMessage>();
  const options = launchOptions(settings, { launch, session, cacheKey: 'bare' });
  const heard = sdk.query({ prompt: said, options })[Symbol.asyncIterator]();

  return {
    async say(words) {
      const content = [{ type: 'text', text: words }] as const;
      said.put({ type: 'user', message: { role: 'user', content }, parent_tool_use_id: null });
      let answer = '';
      while (true) {
        const { value, done } = await heard.next();
        if (done) throw new Error('Claude Code ended within a turn');
        answer += deltaIn(value);
        if (value.type !== 'result') continue;
        if (value.is_error)
          throw new Error(`Claude Code failed: ${value.result ?? value.errors?.join('; ')}`);
        return answer;
      }
    },
    async [Symbol.asyncDispose]() {
      // It ends when its input ends.
      said.end();
      while (!(await heard.next()).done);
    },
  };
}

function deltaIn({ event }: SdkMessage): string {
  return event?.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : '';
}
