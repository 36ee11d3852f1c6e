import * as z from 'zod';
import type { AskedReply, Answer, Usage } from '../troupe.ts';
import {
  Format,
  FunctionGiven,
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
  type ApiRequest,
  callId,
  conversationIn,
  isCut,
} from './answer.ts';
import { type DoorServer } from '../http.ts';
import { dataFrame } from '../speech.ts';

const MOST_URL = 32 * 1_024 * 1_024;
const File = z.looseObject({
  file_data: z.string().nullish(),
  file_id: z.string().nullish(),
  filename: z.string().nullish(),
});
const Part = z.looseObject({
  type: z.string(),
  text: z.string().nullish(),
  refusal: z.string().nullish(),
  image_url: z
    .union([z.string().transform((url) => ({ url })), z.looseObject({ url: z.string().max(MOST_URL) })])
    .nullish(),
  file: File.nullish(),
});
const Callee = z.looseObject({
  name: z.string().nullish(),
  arguments: z.unknown().optional(),
  input: z.unknown().optional(),
});
const Call = z.looseObject({
  id: z.string().nullish(),
  function: Callee.nullish(),
  custom: Callee.nullish(),
});
const Message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: z.union([z.string(), z.array(Part)]).nullish(),
  refusal: z.string().nullish(),
  name: z.string().nullish(),
  tool_call_id: z.string().nullish(),
  tool_calls: z.array(Call).nullish(),
  function_call: Callee.nullish(),
});
type Message = z.infer<typeof Message>;

/** The body of `POST /chat/completions`. Fields that only affect how a model writes, such as `temperature`, are not used. */
export const ChatRequest = z.looseObject({
  /** Id of the addressed agent; `troupe`: the conversation's routing decides. */
  model: z.string().min(1).max(128),
  messages: z.array(Message).min(1).max(10_000),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.literal(1, 'one answer only').nullish(),
  ...ToolFields,
  functions: z.array(FunctionGiven).max(128).nullish(),
  function_call: z.union([z.string(), z.looseObject({ name: z.string() })]).nullish(),
  response_format: Format.nullish(),
  modalities: z.array(z.literal('text', 'agents answer in text')).nullish(),
});
export type ChatRequest = z.infer<typeof ChatRequest>;

/** An agent's answer, in the form of OpenAI's Chat Completions API. Throws `event_invalid`. */
export async function complete(request: ApiRequest<ChatRequest>, server: DoorServer): Promise<Response> {
  const body = await request.body();
  const { model, stream, stream_options: options } = body;
  const format = formatOfChat(body);
  function writerOf({ conversation: id, seq, created }: AnswerPlace): AnswerWriter {
    const head = { id: `chatcmpl-${id}-${seq}`, created, model };
    return {
      whole: (parts, answer) => completion(head, parts, answer),
      begin: () => [completionBegin(head)],
      words: (text) => completionChunk(head, text),
      end: (parts, answer) =>
        completionEnd(head, {
          parts: format ? parts : [],
          answer,
          usage: options?.include_usage === true,
        }),
      fail: (_, error) => ({ error }),
      frame: dataFrame,
      last: 'data: [DONE]\n\n',
    };
  }
  const { context, caller } = request;
  const conversation = conversationIn(request);
  const heard = heardInChat(body);
  const asked = { context, caller, conversation, model, format, heard, isStreamed: stream === true };
  return answerAs(asked, writerOf, server);
}

/** The user's text since the last answer, and the messages before it. Throws `event_invalid`. */
function heardInChat({ messages }: ChatRequest): Heard {
  return heardIn(messages.map(toldBy), '', 'messages');
}

/** Throws `event_invalid` for a request that an agent cannot fulfil. */
function formatOfChat({
  tools,
  tool_choice: choice,
  parallel_tool_calls: isParallel,
  functions,
  function_call: legacy,
  response_format: format,
}: ChatRequest): AskedReply | null {
  const older = (functions ?? []).map((callee) => ({ type: 'function', function: callee }));
  const given = {
    tools: [...(tools ?? []), ...older],
    choice: choice ?? legacy ?? 'auto',
    isSingle: isParallel === false || older.length > 0,
  };
  return replyFormat(given, format, 'response_format');
}

function toldBy(message: Message): Told {
  const text = textOf(message);
  switch (message.role) {
    case 'system':
    case 'developer':
      return { role: 'system', text };
    case 'user':
      return { role: 'user', text, attachments: filesOf(message) };
    case 'assistant':
      return { role: 'assistant', text, calls: toldCalls(message) };
    case 'tool':
    case 'function':
      return {
        role: 'tool',
        call: message.tool_call_id ?? null,
        name: message.name ?? null,
        text,
        attachments: filesOf(message),
      };
  }
}

function textOf({ content, refusal }: Message): string {
  if (typeof content === 'string') return content;
  const texts = (content ?? []).map((part) => part.text ?? part.refusal ?? '');
  return [...texts, refusal ?? ''].filter((text) => text !== '').join('\n');
}

function toldCalls({ tool_calls: calls, function_call: legacy }: Message): ToldCall[] {
  const made = (calls ?? []).map(({ id, function: callee, custom }) => ({ id, ...(callee ?? custom) }));
  return [...made, ...(legacy ? [{ id: null, ...legacy }] : [])].map(
    ({ id, name, arguments: args, input }): ToldCall => ({
      id: id ?? null,
      name: name ?? 'unknown',
      args: textIn(args ?? input),
    }),
  );
}

/** Arguments should be a text; some clients send an object. */
function textIn(args: unknown): string {
  return typeof args === 'string' ? args : JSON.stringify(args ?? {});
}

function filesOf({ content }: Message): Attached[] {
  if (typeof content === 'string') return [];
  return (content ?? []).flatMap((part): Attached[] => {
    if (part.type === 'text' || part.type === 'input_text' || part.type === 'refusal') return [];
    if (part.type === 'image_url' && part.image_url) return [fileAt(part.image_url.url)];
    if (part.type === 'file' && part.file) return [fileIn(part.file, 'messages')];
    throw invalid('messages', `parts of the type "${part.type}" are not taken: text, image_url and file are`);
  });
}

/** Fields of all chunks of a completion. */
interface CompletionHead {
  id: string;
  /** Seconds since the epoch. */
  created: number;
  model: string;
}

/** The first chunk of a streamed completion. */
function completionBegin(head: CompletionHead): object {
  return chunkOf(head, { role: 'assistant', content: '' }, null);
}

function completionChunk(head: CompletionHead, content: string): object {
  return chunkOf(head, { content }, null);
}

/** The last chunks. `parts`: parts that were not streamed; `usage`: whether to add a chunk with the tokens. */
function completionEnd(
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

function completion(head: CompletionHead, parts: readonly AnswerPart[], answer: Answer): object {
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
