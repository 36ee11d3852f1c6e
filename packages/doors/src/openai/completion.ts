import type { Answer, Usage } from '../troupe.ts';
import { type AnswerPart, isCut } from './outcome.ts';

/** What all chunks of a completion have. */
export interface CompletionHead {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  model: string;
}

/** The first chunk of a streamed completion. */
export function completionBegin(head: CompletionHead): object {
  return chunkOf(head, { role: 'assistant', content: '' }, null);
}

/** A piece of a streamed completion. */
export function completionChunk(head: CompletionHead, content: string): object {
  return chunkOf(head, { content }, null);
}

/** The last chunks. `parts`: what was not streamed; `usage`: also the chunk with the tokens. */
export function completionEnd(
  head: CompletionHead,
  { parts, answer, usage }: { parts: readonly AnswerPart[]; answer: Answer; usage: boolean },
): object[] {
  const calls = callsOf(head, parts).map((call, index) =>
    chunkOf(head, { tool_calls: [{ index, ...call }] }, null),
  );
  const words = wordsIn(parts);
  const end = chunkOf(head, {}, finishOf(parts, answer));
  return [
    ...(words === '' ? [] : [completionChunk(head, words)]),
    ...calls,
    end,
    ...(usage
      ? [{ ...head, object: 'chat.completion.chunk', choices: [], usage: usageOf(answer.usage) }]
      : []),
  ];
}

/** The answer as a whole. */
export function completion(head: CompletionHead, parts: readonly AnswerPart[], answer: Answer): object {
  const calls = callsOf(head, parts);
  const content = parts.some(({ kind }) => kind === 'words') ? wordsIn(parts) : null;
  const message = {
    role: 'assistant',
    content,
    refusal: null,
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return {
    ...head,
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(parts, answer) }],
    usage: usageOf(answer.usage),
  };
}

type Finish = 'stop' | 'length' | 'tool_calls';

function finishOf(parts: readonly AnswerPart[], answer: Answer): Finish {
  if (isCut(answer)) return 'length';
  return parts.some(({ kind }) => kind === 'call') ? 'tool_calls' : 'stop';
}

function wordsIn(parts: readonly AnswerPart[]): string {
  return parts.flatMap((part) => (part.kind === 'words' ? [part.text] : [])).join('\n\n');
}

function callsOf({ id }: CompletionHead, parts: readonly AnswerPart[]): object[] {
  const calls = parts.flatMap((part) => (part.kind === 'call' ? [part] : []));
  return calls.map(({ name, args }, index) => ({
    id: callId(id, index),
    type: 'function',
    function: { name, arguments: args },
  }));
}

/** At most 40 characters, as those of OpenAI: the end of the answer's id tells calls of answers apart. */
export function callId(answer: string, index: number): string {
  return `call${index}_${answer.slice(-32)}`;
}

function chunkOf(head: CompletionHead, delta: object, finish: Finish | null): object {
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
