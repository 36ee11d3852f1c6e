import type { Answer } from '../../asking/answer.ts';
import { NO_USAGE } from '../../events/index.ts';
import { type ApiError, isCut } from './outcome.ts';
import type { ReplyFormat } from './reply-format.ts';

/** What an answer of the Responses API says of itself. */
export interface ResponseHead {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  model: string;
  conversation: string;
  isStored: boolean;
  metadata: object;
  format: ReplyFormat | null;
}

type Status = 'in_progress' | 'completed' | 'incomplete' | 'failed';

/** The answer as a whole: one message with all that was said, or one call of the client's tool. */
export function responseOf(
  head: ResponseHead,
  text: string,
  { status, answer, error = null }: { status: Status; answer?: Answer; error?: ApiError | null },
): object {
  const { input, output, cacheRead, reasoning } = answer?.usage ?? NO_USAGE;
  const isEmpty = status === 'in_progress' || (status === 'failed' && text === '');
  return {
    id: head.id,
    object: 'response',
    created_at: head.created,
    status,
    background: false,
    model: head.model,
    conversation: { id: head.conversation },
    output: isEmpty ? [] : [itemOf(head, text, status === 'completed' ? 'completed' : 'incomplete')],
    error: error && { code: error.code, message: error.message },
    incomplete_details: status === 'incomplete' ? { reason: 'max_output_tokens' } : null,
    instructions: null,
    metadata: head.metadata,
    parallel_tool_calls: true,
    previous_response_id: null,
    store: head.isStored,
    temperature: null,
    text: { format: textFormat(head) },
    top_p: null,
    tool_choice: toolOf(head) === null ? 'auto' : { type: 'function', name: toolOf(head) },
    tools: toolsOf(head),
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

/** The answer that has come. */
export function responseWith(head: ResponseHead, text: string, answer: Answer): object {
  return responseOf(head, text, { status: isCut(answer) ? 'incomplete' : 'completed', answer });
}

/** The events of a streamed answer, numbered. */
export function responseEvents(head: ResponseHead) {
  let number = 0;
  const isCall = toolOf(head) !== null;
  const at = { item_id: itemId(head), output_index: 0 };
  const place = { ...at, content_index: 0 };
  const event = (type: string, fields: object) => ({ type, sequence_number: number++, ...fields });
  return {
    begin: () => [
      event('response.created', { response: responseOf(head, '', { status: 'in_progress' }) }),
      event('response.in_progress', { response: responseOf(head, '', { status: 'in_progress' }) }),
      event('response.output_item.added', { output_index: 0, item: itemOf(head, null, 'in_progress') }),
      ...(isCall ? [] : [event('response.content_part.added', { ...place, part: partOf('') })]),
    ],
    words: (delta: string) =>
      isCall
        ? event('response.function_call_arguments.delta', { ...at, delta })
        : event('response.output_text.delta', { ...place, delta, logprobs: [] }),
    end: (text: string, answer: Answer) => {
      const item = itemOf(head, text, isCut(answer) ? 'incomplete' : 'completed');
      return [
        ...(isCall
          ? [event('response.function_call_arguments.done', { ...at, name: toolOf(head), arguments: text })]
          : [
              event('response.output_text.done', { ...place, text, logprobs: [] }),
              event('response.content_part.done', { ...place, part: partOf(text) }),
            ]),
        event('response.output_item.done', { output_index: 0, item }),
        event(isCut(answer) ? 'response.incomplete' : 'response.completed', {
          response: responseWith(head, text, answer),
        }),
      ];
    },
    fail: (text: string, error: ApiError) =>
      event('response.failed', { response: responseOf(head, text, { status: 'failed', error }) }),
  };
}

function toolOf({ format }: ResponseHead): string | null {
  return format?.tool ?? null;
}

function toolsOf({ format }: ResponseHead): object[] {
  if (format?.tool === undefined) return [];
  return [
    { type: 'function', name: format.tool, description: null, parameters: format.schema, strict: false },
  ];
}

function textFormat({ format }: ResponseHead): object {
  if (!format || format.tool !== undefined) return { type: 'text' };
  return { type: 'json_schema', name: 'reply', schema: format.schema, strict: false };
}

function itemId(head: ResponseHead): string {
  return `${toolOf(head) === null ? 'msg' : 'fc'}_${head.id}`;
}

function itemOf(
  head: ResponseHead,
  text: string | null,
  status: 'in_progress' | 'completed' | 'incomplete',
): object {
  const id = itemId(head);
  const name = toolOf(head);
  if (name !== null)
    return {
      id,
      type: 'function_call',
      call_id: `call_${head.id.slice(-35)}`,
      name,
      arguments: text ?? '',
      status,
    };
  const content = text === null ? [] : [partOf(text)];
  return { id, type: 'message', role: 'assistant', status, content };
}

function partOf(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}
