import * as z from 'zod';
import type { AskedReply } from '../troupe.ts';
import { Format, FunctionGiven, replyFormat, ToolFields } from './reply-format.ts';
import {
  type Attached,
  fileAt,
  fileIn,
  type Heard,
  heardIn,
  invalid,
  type Told,
  type ToldCall,
} from './said.ts';

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

/** The body of `POST /chat/completions`. Fields that only shape a model's answer, such as `temperature`, are not used. */
export const ChatRequest = z.looseObject({
  /** Id of the agent that is addressed; `troupe`: whom the conversation's routing names. */
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

/** What the user says since the last answer, and what was said before. Throws `event_invalid`. */
export function heardInChat({ messages }: ChatRequest): Heard {
  return heardIn(messages.map(toldBy), '', 'messages');
}

/** Throws `event_invalid` for what an agent cannot do for a client. */
export function formatOfChat({
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
      return { role: 'assistant', text, calls: callsOf(message) };
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

function callsOf({ tool_calls: calls, function_call: legacy }: Message): ToldCall[] {
  const made = (calls ?? []).map(({ id, function: callee, custom }) => ({ id, ...(callee ?? custom) }));
  return [...made, ...(legacy ? [{ id: null, ...legacy }] : [])].map(
    ({ id, name, arguments: args, input }): ToldCall => ({
      id: id ?? null,
      name: name ?? 'unknown',
      args: textIn(args ?? input),
    }),
  );
}

/** Arguments are a text; some clients send them as data. */
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
