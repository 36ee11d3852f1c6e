import { createHash } from 'node:crypto';
import type OpenAI from 'openai';
import type { PromptMessage } from '../events/index.ts';
import { fitCallId, fitToolName, parseArgs } from './call-text.ts';
import type { ModelRequest } from './provider.ts';

/** Where servers that speak chat completions differ. */
export interface OpenAiQuirks {
  /** Joins user messages that follow each other, for chat templates that want strict alternation. Default false. */
  mergeConsecutive?: boolean;
  /** System messages may stand between others. Default: only at api.openai.com. */
  interleavedSystem?: boolean;
  /** Default: `max_completion_tokens` at api.openai.com, `max_tokens` elsewhere. */
  maxTokensField?: 'max_tokens' | 'max_completion_tokens';
  /** Asks for usage at the end of the stream. Default true. */
  streamUsage?: boolean;
}

type Body = OpenAI.ChatCompletionCreateParamsStreaming;
type Message = OpenAI.ChatCompletionMessageParam;

// OpenAI refuses ids of more than 40 characters; other servers take what they gave.
const CALL_ID = /^[\s\S]{1,40}$/;

export function openAiBody(request: ModelRequest, quirks: OpenAiQuirks, isOpenAi: boolean): Body {
  const messages: Message[] = [];
  for (const message of request.messages) {
    const last = messages.at(-1);
    if (quirks.mergeConsecutive && message.role === 'user' && last?.role === 'user') {
      last.content = `${last.content as string}\n\n${message.content.toWellFormed()}`;
    } else {
      messages.push(openAiMessage(message));
    }
  }
  const body: Body = { model: request.model, messages, stream: true };
  body[quirks.maxTokensField ?? (isOpenAi ? 'max_completion_tokens' : 'max_tokens')] =
    request.maxOutputTokens;
  if (quirks.streamUsage ?? true) body.stream_options = { include_usage: true };
  if (request.tools.length > 0) {
    body.tools = request.tools.map((tool) => ({ type: 'function', function: { ...tool } }));
  }
  // A digest, as the field takes 64 characters and ids are nobody else's business.
  if (isOpenAi) body.prompt_cache_key = createHash('sha256').update(request.cacheKey).digest('base64url');
  return body;
}

function openAiMessage(message: PromptMessage): Message {
  const content = message.content.toWellFormed();
  switch (message.role) {
    case 'system':
    case 'user':
      return { role: message.role, content };
    case 'tool':
      return { role: 'tool', tool_call_id: fitCallId(message.call, CALL_ID), content };
    case 'assistant': {
      if (!message.calls?.length) return { role: 'assistant', content };
      const calls = message.calls.map((call) => ({
        type: 'function' as const,
        id: fitCallId(call.id, CALL_ID),
        // Local servers parse the arguments and refuse the whole request over one bad text.
        function: {
          name: fitToolName(call.name),
          arguments: call.args !== '' && parseArgs(call.args) ? call.args.toWellFormed() : '{}',
        },
      }));
      return { role: 'assistant', content: content === '' ? null : content, tool_calls: calls };
    }
  }
}
