import { EventSourceParserStream } from 'eventsource-parser/stream';
import {
  defineProvider,
  type ModelCall,
  type ModelEvent,
  type ModelRequest,
  type Provider,
} from '../../src/index.ts';
import type { ReplyLimitSettings } from '../../src/providers/reply-limits.ts';

interface Chunk {
  choices?: { delta?: Delta; finish_reason?: string | null }[];
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    prompt_tokens_details?: { cached_tokens?: number; cache_write_tokens?: number };
    completion_tokens_details?: { reasoning_tokens?: number };
  } | null;
  error?: { message?: string; code?: string };
}

interface Delta {
  content?: string | null;
  reasoning_content?: string | null;
  reasoning?: string | null;
  tool_calls?: { index: number; id?: string; function?: { name?: string; arguments?: string } }[];
}

const STOPS: Record<string, 'end' | 'calls' | 'length' | 'refusal'> = {
  stop: 'end',
  tool_calls: 'calls',
  length: 'length',
  content_filter: 'refusal',
};

/** A provider as a program would write it: chat completions over `fetch`, without an SDK. */
export function ownProvider(baseUrl: string, replyLimits: ReplyLimitSettings = {}): Provider {
  return defineProvider({
    name: 'own',
    replyLimits,
    secrets: ['key-of-test'],
    async *read(request, { signal, fetch, buffered }) {
      const response = await fetch(`${baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer key-of-test' },
        body: JSON.stringify(bodyOf(request)),
        signal,
      });
      if (!response.ok || !response.body) throw await failureOf(response);
      yield* eventsOf(response.body, request, buffered);
    },
  });
}

function bodyOf({ model, messages, maxOutputTokens }: ModelRequest) {
  const plain = messages.map(({ role, content }) => ({ role, content }));
  return {
    model,
    messages: plain,
    max_tokens: maxOutputTokens,
    stream: true,
    stream_options: { include_usage: true },
  };
}

async function failureOf(response: Response): Promise<Error> {
  const text = await response.text();
  const { error = {} } = (text.startsWith('{') ? JSON.parse(text) : {}) as Chunk;
  return Object.assign(new Error(error.message ?? text), {
    status: response.status,
    headers: response.headers,
    error,
  });
}

async function* eventsOf(
  body: ReadableStream<Uint8Array>,
  { model }: ModelRequest,
  buffered: ModelCall['buffered'],
): AsyncGenerator<ModelEvent> {
  let thought = '';
  const calls = new Map<number, { id: string; name: string; args: string }>();
  let stop: (typeof STOPS)[string] | null = null;
  let usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  const decoded = body.pipeThrough(new TextDecoderStream() as never) as ReadableStream<string>;
  for await (const { data } of decoded.pipeThrough(new EventSourceParserStream())) {
    if (data === '[DONE]') break;
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error) throw Object.assign(new Error(chunk.error.message), { error: chunk.error });
    const [choice] = chunk.choices ?? [];
    if (choice?.delta?.content) yield { type: 'text', delta: choice.delta.content };
    const thinking = choice?.delta?.reasoning_content ?? choice?.delta?.reasoning ?? '';
    buffered('reasoning', thinking);
    thought += thinking;
    for (const { index, id, function: part } of choice?.delta?.tool_calls ?? []) {
      const call = calls.get(index) ?? { id: id ?? '', name: '', args: '' };
      buffered('arguments', part?.arguments ?? '');
      calls.set(index, {
        ...call,
        name: call.name + (part?.name ?? ''),
        args: call.args + (part?.arguments ?? ''),
      });
    }
    if (choice?.finish_reason) stop = STOPS[choice.finish_reason] ?? 'end';
    if (chunk.usage) usage = usageOf(chunk.usage);
  }
  // Without its end the answer is cut off: the port reports that.
  if (stop === null) return;
  if (thought !== '') yield { type: 'reasoning', reasoning: { text: thought, provider: 'own', model } };
  // A call that was cut off has half of its arguments.
  if (stop !== 'length') for (const call of calls.values()) yield { type: 'call', call };
  yield { type: 'done', stop, usage };
}

function usageOf({ prompt_tokens, completion_tokens, ...more }: NonNullable<Chunk['usage']>) {
  return {
    input: prompt_tokens,
    output: completion_tokens,
    cacheRead: more.prompt_tokens_details?.cached_tokens ?? 0,
    cacheWrite: more.prompt_tokens_details?.cache_write_tokens ?? 0,
    reasoning: more.completion_tokens_details?.reasoning_tokens ?? 0,
  };
}
