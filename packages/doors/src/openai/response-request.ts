import * as z from 'zod';
import type { AskedReply } from '../troupe.ts';
import { Format, replyFormat, ToolFields } from './reply-format.ts';
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

/** The body of `POST /responses`. Fields that only shape a model's answer, such as `temperature`, are not used. */
export const ResponseRequest = z.looseObject({
  /** Id of the agent that is addressed; `troupe`: whom the conversation's routing names. */
  model: z.string().min(1).max(128),
  input: z.union([z.string(), z.array(Item).min(1).max(10_000)]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  /** False: the answer is not given by its id. The conversation is in the log all the same. */
  store: z.boolean().nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  /** Id of the conversation to go on with. */
  conversation: z.union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)]).nullish(),
  previous_response_id: z.string().nullish(),
  background: z.literal(false, 'answers are not fetched later: leave it out').nullish(),
  prompt: z.null('there are no stored prompts: leave it out').optional(),
  ...ToolFields,
  text: z.looseObject({ format: Format.nullish() }).nullish(),
});
export type ResponseRequest = z.infer<typeof ResponseRequest>;

/** A message of the log, and so the answer to it. */
export interface AnswerId {
  conversation: string;
  seq: number;
  /** Whether the answer is given by its id. */
  isStored: boolean;
}

/** Id of the answer to the message with this seq. It names the conversation, so that the next request can go on from it. */
export function responseId({ conversation, seq, isStored }: AnswerId): string {
  return `resp_${conversation}_${seq}${isStored ? '' : '_unstored'}`;
}

/** Null: it is not the id of an answer of this server. */
export function answerNamed(id: string): AnswerId | null {
  const [, conversation, seq, unstored] = /^resp_(.+)_(\d{1,15})(_unstored)?$/.exec(id) ?? [];
  if (conversation === undefined) return null;
  return { conversation, seq: Number(seq), isStored: unstored === undefined };
}

/** The conversation that the request goes on with. Null: a new one. Throws `event_invalid`. */
export function conversationOf({
  conversation,
  previous_response_id: previous,
}: ResponseRequest): string | null {
  if (conversation != null) return conversation;
  if (previous == null) return null;
  const named = answerNamed(previous);
  if (named) return named.conversation;
  throw invalid('previous_response_id', 'is not the id of an answer of this server');
}

/** What the user says since the last answer, and what was said before. Throws `event_invalid`. */
export function heardInResponse({ input, instructions }: ResponseRequest): Heard {
  const items: Item[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  return heardIn(items.reduce(addItem, []), instructions ?? '', 'input');
}

/** Throws `event_invalid` for what an agent cannot do for a client. */
export function formatOfResponse({
  tools,
  tool_choice: choice,
  parallel_tool_calls: isParallel,
  text,
}: ResponseRequest): AskedReply | null {
  const given = { tools: tools ?? [], choice: choice ?? 'auto', isSingle: isParallel === false };
  return replyFormat(given, text?.format, 'text.format');
}

/** The parts of one answer are items of their own: they become one. */
function addItem(told: Told[], item: Item): Told[] {
  const next = toldBy(item);
  const last = told.at(-1);
  if (next?.role === 'assistant' && last?.role === 'assistant')
    told[told.length - 1] = {
      ...last,
      ...next,
      text: [last.text, next.text].filter((text) => text !== '').join('\n\n'),
      calls: [...last.calls, ...next.calls],
      // What is of another server would be missing there.
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

/** Items of an answer have its id, after a word of their own. */
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
