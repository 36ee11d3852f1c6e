import type { Answer } from '../../asking/answer.ts';
import type { Usage } from '../../events/index.ts';
import { isCut } from './outcome.ts';

/** What all chunks of a completion have. */
export interface CompletionHead {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  model: string;
  /** The tool of the client whose arguments the answer is. */
  tool: string | null;
}

/** The first chunk of a streamed completion. */
export function completionBegin(head: CompletionHead): object {
  return chunkOf(head, { role: 'assistant', content: head.tool === null ? '' : null }, null);
}

/** A piece of a streamed completion. */
export function completionChunk(head: CompletionHead, content: string): object {
  return chunkOf(
    head,
    head.tool === null ? { content } : { tool_calls: [{ index: 0, ...callOf(head, content) }] },
    null,
  );
}

/** The last chunk. `usage`: also the one with the tokens. */
export function completionEnd(head: CompletionHead, answer: Answer, { usage }: { usage: boolean }): object[] {
  const end = chunkOf(head, {}, finishOf(head, answer));
  return usage
    ? [end, { ...shared(head), object: 'chat.completion.chunk', choices: [], usage: usageOf(answer.usage) }]
    : [end];
}

/** The answer as a whole. */
export function completion(head: CompletionHead, content: string, answer: Answer): object {
  const message = head.tool === null ? { content } : { content: null, tool_calls: [callOf(head, content)] };
  return {
    ...shared(head),
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', ...message, refusal: null },
        logprobs: null,
        finish_reason: finishOf(head, answer),
      },
    ],
    usage: usageOf(answer.usage),
  };
}

type Finish = 'stop' | 'length' | 'tool_calls';

function finishOf({ tool }: CompletionHead, answer: Answer): Finish {
  if (isCut(answer)) return 'length';
  return tool === null ? 'stop' : 'tool_calls';
}

function callOf({ id, tool }: CompletionHead, args: string): object {
  return { id: `call_${id.slice(-35)}`, type: 'function', function: { name: tool, arguments: args } };
}

function chunkOf(head: CompletionHead, delta: object, finish: Finish | null): object {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
  return { ...shared(head), object: 'chat.completion.chunk', choices };
}

function shared({ id, created, model }: CompletionHead): object {
  return { id, created, model };
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
