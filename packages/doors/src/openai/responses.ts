import * as z from 'zod';
import type { Context } from 'hono';
import { type AskedReply, type Answer, NO_USAGE, type EventOf, TroupeError } from '../troupe.ts';
import {
  Format,
  replyFormat,
  ToolFields,
  type Attached,
  fileAt,
  fileIn,
  type Heard,
  heardIn,
  invalid,
  type Told,
  type ToldCall,
} from './requests.ts';
import {
  answerAs,
  type AnswerPart,
  type AnswerPlace,
  type AnswerWriter,
  type ApiError,
  type ApiRequest,
  callId,
  conversationIn,
  isCut,
  failureOf,
  answerWords,
  ROUTED,
  streamAnswer,
} from './answer.ts';
import {
  type Caller,
  ConversationPath,
  type DoorServer,
  changesSince,
  filesIn,
  holdPlace,
  parseInput,
} from '../http.ts';

const Part = z.looseObject({
  type: z.string(),
  text: z.string().nullish(),
  refusal: z.string().nullish(),
  image_url: z.string().nullish(),
  file_id: z.string().nullish(),
  file_url: z.string().nullish(),
  file_data: z.string().nullish(),
  filename: z.string().nullish(),
});
const Content = z.union([z.string(), z.array(Part)]).nullish();
const Item = z.looseObject({
  type: z.string().nullish(),
  id: z.string().nullish(),
  role: z.enum(['system', 'developer', 'user', 'assistant']).nullish(),
  content: Content,
  call_id: z.string().nullish(),
  name: z.string().nullish(),
  arguments: z.string().nullish(),
  input: z.string().nullish(),
  output: z.union([Content, z.record(z.string(), z.unknown())]),
});
type Item = z.infer<typeof Item>;

/** The body of `POST /responses`. Fields that only affect how a model writes, such as `temperature`, are not used. */
export const ResponseRequest = z.looseObject({
  /** Id of the addressed agent; `troupe`: the conversation's routing decides. */
  model: z.string().min(1).max(128),
  input: z.union([z.string(), z.array(Item).min(1).max(10_000)]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  /** False: the answer cannot be retrieved by its id. The log has the conversation anyway. */
  store: z.boolean().nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  /** Id of the conversation to continue. */
  conversation: z.union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)]).nullish(),
  previous_response_id: z.string().nullish(),
  background: z.literal(false, 'answers are not fetched later: leave it out').nullish(),
  prompt: z.null('there are no stored prompts: leave it out').optional(),
  ...ToolFields,
  text: z.looseObject({ format: Format.nullish() }).nullish(),
});
export type ResponseRequest = z.infer<typeof ResponseRequest>;

/** An agent's answer, in the form of OpenAI's Responses API. Throws `event_invalid`. */
export async function respond(request: ApiRequest<ResponseRequest>, server: DoorServer): Promise<Response> {
  const { context, caller } = request;
  const body = await request.body();
  const here = conversationIn(request);
  const { model, metadata, store, stream } = body;
  const named = conversationOf(body);
  if (here !== null && named !== null && named !== here)
    throw invalid('conversation', `the path names "${here}"`);
  const { conversation = null } = parseInput(
    ConversationPath.partial(),
    { conversation: here ?? named ?? undefined },
    'the body',
  );
  const format = formatOfResponse(body);
  function writerOf({ conversation: id, seq, created }: AnswerPlace): AnswerWriter {
    const isStored = store !== false;
    return responseWriter({
      id: responseId({ conversation: id, seq, isStored }),
      created,
      model,
      conversation: id,
      isStored,
      metadata: metadata ?? {},
      format,
    });
  }
  const heard = heardInResponse(body);
  const asked = { context, caller, conversation, model, format, heard, isStreamed: stream === true };
  return answerAs(asked, writerOf, server);
}

/** A message of the log, which identifies the answer to it. */
interface AnswerId {
  conversation: string;
  seq: number;
  /** Whether the answer can be retrieved by its id. */
  isStored: boolean;
}

/** Id of the answer to the message with this seq. It contains the conversation, so that the next request can continue there. */
function responseId({ conversation, seq, isStored }: AnswerId): string {
  return `resp_${conversation}_${seq}${isStored ? '' : '_unstored'}`;
}

/** Null if it is not the id of an answer of this server. */
function answerNamed(id: string): AnswerId | null {
  const [, conversation, seq, unstored] = /^resp_(.+)_(\d{1,15})(_unstored)?$/.exec(id) ?? [];
  if (conversation === undefined) return null;
  return { conversation, seq: Number(seq), isStored: unstored === undefined };
}

/** The conversation that the request continues. Null: a new one. Throws `event_invalid`. */
function conversationOf({ conversation, previous_response_id: previous }: ResponseRequest): string | null {
  if (conversation != null) return conversation;
  if (previous == null) return null;
  const named = answerNamed(previous);
  if (named) return named.conversation;
  throw invalid('previous_response_id', 'is not the id of an answer of this server');
}

/** The user's text since the last answer, and the messages before it. Throws `event_invalid`. */
function heardInResponse({ input, instructions }: ResponseRequest): Heard {
  const items: Item[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  return heardIn(items.reduce(addItem, []), instructions ?? '', 'input');
}

/** Throws `event_invalid` for a request that an agent cannot fulfil. */
function formatOfResponse({
  tools,
  tool_choice: choice,
  parallel_tool_calls: isParallel,
  text,
}: ResponseRequest): AskedReply | null {
  const given = { tools: tools ?? [], choice: choice ?? 'auto', isSingle: isParallel === false };
  return replyFormat(given, text?.format, 'text.format');
}

/** Joins items that are parts of one answer. */
function addItem(told: Told[], item: Item): Told[] {
  const next = toldBy(item);
  const last = told.at(-1);
  if (next?.role === 'assistant' && last?.role === 'assistant')
    told[told.length - 1] = {
      ...last,
      ...next,
      text: [last.text, next.text].filter((text) => text !== '').join('\n\n'),
      calls: [...last.calls, ...next.calls],
      // An item of another server's answer would be missing there.
      answer: last.answer && next.answer,
      isReference: next.isReference ?? last.isReference,
    };
  else if (next) told.push(next);
  return told;
}

function toldBy(item: Item): Told | null {
  const text = textOf(item.content);
  const type = item.role ?? item.type ?? 'an item without a type';
  switch (type) {
    case 'system':
    case 'developer':
      return { role: 'system', text };
    case 'user':
      return { role: 'user', text, attachments: filesOf(item.content) };
    case 'assistant':
      return { role: 'assistant', text, calls: [], ...answerOf(item) };
    case 'item_reference':
      return { role: 'assistant', text: '', calls: [], ...answerOf(item), isReference: true };
    case 'function_call':
    case 'custom_tool_call':
      return { role: 'assistant', text: '', calls: [callIn(item)], ...answerOf(item) };
    case 'function_call_output':
    case 'custom_tool_call_output':
      return resultIn(item);
    case 'reasoning':
    case 'compaction':
      return null;
    default:
      return { role: 'assistant', text: `(${type.slice(0, 60)})`, calls: [] };
  }
}

function callIn({ call_id: id, name, arguments: args, input }: Item): ToldCall {
  return { id: id ?? null, name: name ?? 'unknown', args: args ?? input ?? '{}' };
}

function resultIn({ call_id: call, output }: Item): Told {
  const isContent = typeof output === 'string' || Array.isArray(output) || output == null;
  const text = isContent ? textOf(output) : JSON.stringify(output);
  const attachments = isContent ? filesOf(output) : [];
  return { role: 'tool', call: call ?? null, name: null, text, attachments };
}

/** Ids of an answer's items contain the answer's id, after a prefix. */
function answerOf({ id }: Item): Pick<Told & { role: 'assistant' }, 'answer'> {
  const answer = answerNamed((id ?? '').replace(/^(?:msg|fc)\d*_/, ''));
  return answer ? { answer } : {};
}

function textOf(content: z.infer<typeof Content>): string {
  if (typeof content === 'string') return content;
  return (content ?? [])
    .map((part) => part.text ?? part.refusal ?? '')
    .filter((text) => text !== '')
    .join('\n');
}

const WORDS = ['input_text', 'output_text', 'text', 'refusal', 'summary_text'];

function filesOf(content: z.infer<typeof Content>): Attached[] {
  if (typeof content === 'string') return [];
  return (content ?? []).flatMap((part): Attached[] => {
    const { type, image_url: image, file_url: url } = part;
    if (WORDS.includes(type)) return [];
    if (type === 'input_image' && image) return [fileAt(image)];
    if (type === 'input_image') return [fileIn(part, 'input')];
    if (type === 'input_file') return [url ? fileAt(url, part.filename) : fileIn(part, 'input')];
    throw invalid(
      'input',
      `parts of the type "${type}" are not taken: input_text, input_image and input_file are`,
    );
  });
}

/** The facts that an answer of the Responses API contains about itself. */
interface ResponseHead {
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

/** The whole answer: a message with all of the text, and calls of the client's tools. */
function responseOf(
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

function responseWith(head: ResponseHead, parts: readonly AnswerPart[], answer: Answer): object {
  return responseOf(head, parts, { status: isCut(answer) ? 'incomplete' : 'completed', answer });
}

/** The text before a failure. */
function wordsSaid(text: string): AnswerPart[] {
  return text === '' ? [] : [{ kind: 'words', text }];
}

/** The events of a streamed answer, numbered. Plain text is streamed as it comes, in the first item. */
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
function responseWriter(head: ResponseHead) {
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
  /** Index among the items of the answer. */
  index: number;
}

/** The tools, as far as the log has them. */
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

/** The id of an item contains the answer's id, so that a history can continue in its conversation. */
function itemId({ id }: ResponseHead, { part, index }: Placed): string {
  return `${part.kind === 'call' ? 'fc' : 'msg'}${index === 0 ? '' : index}_${id}`;
}

function placeOf(head: ResponseHead, placed: Placed) {
  return { item_id: itemId(head, placed), output_index: placed.index, content_index: 0 };
}

/** Status null: it is still being written. */
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

interface Wanted {
  caller: Caller;
  /** `response`: id of the answer. */
  params: { conversation?: string; response: string };
}

/** Longest wait for an answer that is read by its id, ms. After it the answer is reported as in progress. */
const TELL_MS = 1_000;

/** An answer of the Responses API, read from the log. Throws `conversation_unknown` and, for a part of a stream, `event_invalid`. */
export async function toldResponse(
  { context, caller, params, query }: Wanted & { context: Context; query: { stream?: boolean | undefined } },
  { clock, signal }: DoorServer,
): Promise<Response | { id: string; object: string }> {
  // A repeated stream has other pieces with other numbers.
  if (context.req.query('starting_after') !== undefined)
    throw invalid('starting_after', 'an answer is told from its beginning: leave it out');
  const head = headOf(await askedBy({ caller, params }));
  const { conversation, format } = head;
  const words = answerWords(caller.troupe, conversation, format);
  const changesUntil = (ends: AbortSignal) => changesSince(caller.troupe, head, ends);
  const place = holdPlace({ caller, clock, signal });
  if (query.stream === true) {
    const writer = responseWriter(head);
    return streamAnswer(context, { changes: changesUntil }, { writer, words, format, caller, clock, place });
  }
  const late = new AbortController();
  void clock.sleep(TELL_MS, late.signal).then(() => late.abort());
  try {
    const ends = AbortSignal.any([place.ends, context.req.raw.signal, late.signal]);
    const changes = changesUntil(ends);
    let next = await changes.next();
    for (; !next.done; next = await changes.next()) words.see(next.value);
    return given(head, next.value, words);
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'aborted') throw error;
    return asAnswer(responseOf(head, [], { status: 'in_progress' }));
  } finally {
    late.abort();
    place.end();
  }
}

function headOf(event: EventOf<'message'>): ResponseHead & { seq: number } {
  const { conversation, seq, to, at, context: { reply = null } = {} } = event;
  return {
    id: responseId({ conversation, seq, isStored: true }),
    created: Math.floor(at / 1_000),
    model: to.length === 1 && to[0] !== undefined ? to[0] : ROUTED,
    conversation,
    seq,
    isStored: true,
    metadata: {},
    format: reply,
  };
}

function given(
  head: ResponseHead,
  answer: Answer,
  words: ReturnType<typeof answerWords>,
): { id: string; object: string } {
  const error = failureOf(answer, head.format);
  return asAnswer(
    error
      ? responseOf(head, wordsSaid(words.said), { status: 'failed', error })
      : responseWith(head, words.parts(answer), answer),
  );
}

function asAnswer(response: object): { id: string; object: string } {
  return response as { id: string; object: string };
}

/** The message that an answer belongs to, as items of a request. Throws `conversation_unknown`. */
export async function inputItems({ caller, params }: Wanted) {
  const event = await askedBy({ caller, params });
  const files = await filesIn(caller.troupe)(event);
  const { content } = event.body;
  const id = `msg_in_${params.response}`;
  const parts = files.map(({ mediaType, name, base64 }) => {
    const url = base64 === null ? null : `data:${mediaType};base64,${base64}`;
    return mediaType.startsWith('image/')
      ? { type: 'input_image', detail: 'auto', image_url: url }
      : { type: 'input_file', ...(name !== undefined && { filename: name }), file_data: url };
  });
  const said = content === '' ? [] : [{ type: 'input_text', text: content }];
  const item = { id, type: 'message', role: 'user', status: 'completed', content: [...said, ...parts] };
  return { object: 'list' as const, data: [item], first_id: id, last_id: id, has_more: false as const };
}

/** The message that the answer with this id belongs to. */
async function askedBy({ caller, params }: Wanted): Promise<EventOf<'message'>> {
  const within = conversationIn({ params });
  const id = params.response;
  const named = answerNamed(id);
  const isHere = named?.isStored === true && (within === null || named.conversation === within);
  const event = isHere ? await messageAt(caller, named.conversation, named.seq) : null;
  if (event?.kind === 'message' && event.author.kind !== 'agent') return event;
  const why = named?.isStored === false ? ': it was asked for with store: false' : '';
  throw new TroupeError('conversation_unknown', `there is no response "${id}"${why}`, { response: id });
}

async function messageAt({ troupe }: Caller, conversation: string, seq: number) {
  if (seq < 1) return null;
  const { events } = await troupe.events(conversation, { after: seq - 1, limit: 1 });
  return events.find((event) => event.seq === seq) ?? null;
}
