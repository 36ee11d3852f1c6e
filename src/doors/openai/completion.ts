import type { Answer } from '../../asking/answer.ts';
import type { Usage } from '../../events/index.ts';

/** What all chunks of a completion have. */
export interface CompletionHead {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  model: string;
}

/** A piece of a streamed completion. */
export function completionChunk(head: CompletionHead, content: string, isFirst: boolean): object {
  return chunkOf(head, { ...(isFirst && { role: 'assistant' }), content }, null);
}

/** The last chunk. `usage`: also the one with the tokens. */
export function completionEnd(head: CompletionHead, answer: Answer, { usage }: { usage: boolean }): object[] {
  const end = chunkOf(head, {}, 'stop');
  return usage
    ? [end, { ...head, object: 'chat.completion.chunk', choices: [], usage: usageOf(answer.usage) }]
    : [end];
}

/** The answer as a whole. */
export function completion(head: CompletionHead, content: string, answer: Answer): object {
  return {
    ...head,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content, refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: usageOf(answer.usage),
  };
}

function chunkOf(head: CompletionHead, delta: object, finish: 'stop' | null): object {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
  return { ...head, object: 'chat.completion.chunk', choices };
}

function usageOf({ input, output, cacheRead, reasoning }: Usage): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cacheRead },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}
