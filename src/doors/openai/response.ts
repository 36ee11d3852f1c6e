import type { Answer } from '../../asking/answer.ts';
import { NO_USAGE } from '../../events/index.ts';

/** What an answer of the Responses API says of itself. */
export interface ResponseHead {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  model: string;
  conversation: string;
}

type Status = 'in_progress' | 'completed' | 'failed';

/** The answer as a whole: one message with all that was said. */
export function responseOf(
  head: ResponseHead,
  text: string,
  { status, answer, error = null }: { status: Status; answer?: Answer; error?: object | null },
): object {
  const { input, output, cacheRead, reasoning } = answer?.usage ?? NO_USAGE;
  return {
    id: head.id,
    object: 'response',
    created_at: head.created,
    status,
    model: head.model,
    conversation: { id: head.conversation },
    output: status === 'in_progress' ? [] : [itemOf(head, text, 'completed')],
    error,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    parallel_tool_calls: true,
    temperature: null,
    top_p: null,
    tool_choice: 'auto',
    tools: [],
    usage: answer
      ? {
          input_tokens: input,
          input_tokens_details: { cached_tokens: cacheRead },
          output_tokens: output,
          output_tokens_details: { reasoning_tokens: reasoning },
          total_tokens: input + output,
        }
      : null,
  };
}

/** The events of a streamed answer, numbered. */
export function responseEvents(head: ResponseHead) {
  let number = 0;
  const place = { item_id: `msg_${head.id}`, output_index: 0, content_index: 0 };
  const event = (type: string, fields: object) => ({ type, sequence_number: number++, ...fields });
  return {
    begin: () => [
      event('response.created', { response: responseOf(head, '', { status: 'in_progress' }) }),
      event('response.in_progress', { response: responseOf(head, '', { status: 'in_progress' }) }),
      event('response.output_item.added', { output_index: 0, item: itemOf(head, null, 'in_progress') }),
      event('response.content_part.added', { ...place, part: partOf('') }),
    ],
    words: (delta: string) => event('response.output_text.delta', { ...place, delta, logprobs: [] }),
    end: (text: string, answer: Answer) => [
      event('response.output_text.done', { ...place, text, logprobs: [] }),
      event('response.content_part.done', { ...place, part: partOf(text) }),
      event('response.output_item.done', { output_index: 0, item: itemOf(head, text, 'completed') }),
      event('response.completed', { response: responseOf(head, text, { status: 'completed', answer }) }),
    ],
    fail: (text: string, error: object) =>
      event('response.failed', { response: responseOf(head, text, { status: 'failed', error }) }),
  };
}

function itemOf({ id }: ResponseHead, text: string | null, status: 'in_progress' | 'completed'): object {
  const content = text === null ? [] : [partOf(text)];
  return { id: `msg_${id}`, type: 'message', role: 'assistant', status, content };
}

function partOf(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}
