import { type Answer, type AskedReply, NO_USAGE } from '../troupe.ts';
import { callId } from './completion.ts';
import { type AnswerPart, type ApiError, isCut } from './outcome.ts';

/** What an answer of the Responses API says of itself. */
export interface ResponseHead {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  model: string;
  conversation: string;
  isStored: boolean;
  metadata: object;
  format: AskedReply | null;
}

type Status = 'in_progress' | 'completed' | 'incomplete' | 'failed';

/** The answer as a whole: a message with all that was said, and calls of the client's tools. */
export function responseOf(
  head: ResponseHead,
  parts: readonly AnswerPart[],
  { status, answer, error = null }: { status: Status; answer?: Answer; error?: ApiError | null },
): object {
  const { input, output, cacheRead, reasoning } = answer?.usage ?? NO_USAGE;
  const done = status === 'completed' ? 'completed' : 'incomplete';
  return {
    id: head.id,
    object: 'response',
    created_at: head.created,
    status,
    background: false,
    model: head.model,
    conversation: { id: head.conversation },
    output: parts.map((part, index) => itemOf(head, { part, index }, done)),
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
    ...toolsOf(head),
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
export function responseWith(head: ResponseHead, parts: readonly AnswerPart[], answer: Answer): object {
  return responseOf(head, parts, { status: isCut(answer) ? 'incomplete' : 'completed', answer });
}

/** The words that were said before a failure. */
export function wordsSaid(text: string): AnswerPart[] {
  return text === '' ? [] : [{ kind: 'words', text }];
}

/** The events of a streamed answer, numbered. Words in no form are streamed as they come, in the first item. */
function responseEvents(head: ResponseHead) {
  const isGrowing = head.format === null;
  const first = { part: { kind: 'words', text: '' }, index: 0 } as const;
  let number = 0;
  const event = (type: string, fields: object) => ({ type, sequence_number: number++, ...fields });
  const begun = () =>
    event('response.output_item.added', { output_index: 0, item: itemOf(head, first, null) });
  const words = (delta: string) =>
    event('response.output_text.delta', { ...placeOf(head, first), delta, logprobs: [] });

  function* item(placed: Placed, status: 'completed' | 'incomplete'): Generator<object> {
    const { part, index } = placed;
    const place = placeOf(head, placed);
    const at = { item_id: place.item_id, output_index: index };
    const empty = { ...placed, part: { ...part, text: '', args: '' } };
    if (!isGrowing)
      yield event('response.output_item.added', { output_index: index, item: itemOf(head, empty, null) });
    if (part.kind === 'call') {
      const { name, args } = part;
      yield event('response.function_call_arguments.delta', { ...at, delta: args });
      yield event('response.function_call_arguments.done', { ...at, name, arguments: args });
    } else {
      const { text } = part;
      if (!isGrowing) {
        yield event('response.content_part.added', { ...place, part: partOf('') });
        yield event('response.output_text.delta', { ...place, delta: text, logprobs: [] });
      }
      yield event('response.output_text.done', { ...place, text, logprobs: [] });
      yield event('response.content_part.done', { ...place, part: partOf(text) });
    }
    yield event('response.output_item.done', { output_index: index, item: itemOf(head, placed, status) });
  }

  return {
    begin: () => [
      event('response.created', { response: responseOf(head, [], { status: 'in_progress' }) }),
      event('response.in_progress', { response: responseOf(head, [], { status: 'in_progress' }) }),
      ...(isGrowing
        ? [begun(), event('response.content_part.added', { ...placeOf(head, first), part: partOf('') })]
        : []),
    ],
    words,
    end(parts: readonly AnswerPart[], answer: Answer): object[] {
      const [status, type] = isCut(answer)
        ? (['incomplete', 'response.incomplete'] as const)
        : (['completed', 'response.completed'] as const);
      const items = parts.flatMap((part, index) => [...item({ part, index }, status)]);
      return [...items, event(type, { response: responseWith(head, parts, answer) })];
    },
    fail: (text: string, error: ApiError) =>
      event('response.failed', { response: responseOf(head, wordsSaid(text), { status: 'failed', error }) }),
  };
}

/** Writes an answer, whole or as a stream. */
export function responseWriter(head: ResponseHead) {
  return {
    ...responseEvents(head),
    whole: (parts: readonly AnswerPart[], answer: Answer) => responseWith(head, parts, answer),
    frame: (event: object) =>
      `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`,
    last: '',
  };
}

interface Placed {
  part: AnswerPart;
  /** Among the items of the answer. */
  index: number;
}

/** The tools as far as the log has them. */
function toolsOf({ format }: ResponseHead): object {
  if (format?.tool === undefined)
    return { tool_choice: format?.calls === 'required' ? 'required' : 'auto', tools: [] };
  const { tool: name, schema: parameters } = format;
  return {
    tool_choice: { type: 'function', name },
    tools: [{ type: 'function', name, description: null, parameters, strict: false }],
  };
}

function textFormat({ format }: ResponseHead): object {
  if (!format || format.tool !== undefined || format.calls !== undefined) return { type: 'text' };
  return { type: 'json_schema', name: 'reply', schema: format.schema, strict: false };
}

/** The id of an item names the answer, so that a history goes on in its conversation. */
function itemId({ id }: ResponseHead, { part, index }: Placed): string {
  return `${part.kind === 'call' ? 'fc' : 'msg'}${index === 0 ? '' : index}_${id}`;
}

function placeOf(head: ResponseHead, placed: Placed) {
  return { item_id: itemId(head, placed), output_index: placed.index, content_index: 0 };
}

/** Status null: it is being written. */
function itemOf(head: ResponseHead, placed: Placed, done: 'completed' | 'incomplete' | null): object {
  const { part, index } = placed;
  const id = itemId(head, placed);
  const status = done ?? 'in_progress';
  if (part.kind === 'call')
    return {
      id,
      type: 'function_call',
      call_id: callId(head.id, index),
      name: part.name,
      arguments: part.args,
      status,
    };
  return {
    id,
    type: 'message',
    role: 'assistant',
    status,
    content: done === null ? [] : [partOf(part.text)],
  };
}

function partOf(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}
