import * as z from 'zod';
import { TroupeError } from '../../errors.ts';
import { imageAt, type Said } from './said.ts';

const Part = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  image_url: z.string().nullish(),
});
const Item = z.looseObject({
  type: z.string().nullish(),
  role: z.enum(['system', 'developer', 'user', 'assistant']).optional(),
  content: z.union([z.string(), z.array(Part)]).nullish(),
});
type Item = z.infer<typeof Item>;

/** The body of `POST /responses`. Fields that only shape a model's answer, such as `temperature`, are not used. */
export const ResponseRequest = z.looseObject({
  /** Id of the agent that is addressed; `troupe`: whom the conversation's routing names. */
  model: z.string().min(1).max(128),
  input: z.union([z.string(), z.array(Item).min(1).max(10_000)]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  /** Id of the conversation to go on with. */
  conversation: z.union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)]).nullish(),
  previous_response_id: z.string().nullish(),
  background: z.literal(false, 'answers are not fetched later: leave it out').nullish(),
  tools: z.array(z.unknown()).max(0, 'agents have tools of their own: leave them out').nullish(),
});
export type ResponseRequest = z.infer<typeof ResponseRequest>;

/** Id of the answer to the message with this seq. It names the conversation, so that the next request can go on from it. */
export function responseId(conversation: string, seq: number): string {
  return `resp_${conversation}_${seq}`;
}

/** The conversation that the request goes on with. Null: a new one. Throws `event_invalid`. */
export function conversationOf({
  conversation,
  previous_response_id: previous,
}: ResponseRequest): string | null {
  if (conversation != null) return conversation;
  if (previous == null) return null;
  const [, named] = /^resp_(.+)_\d+$/.exec(previous) ?? [];
  if (named !== undefined) return named;
  const message = 'previous_response_id: is not the id of an answer of this server';
  throw new TroupeError('event_invalid', message, { path: 'previous_response_id' });
}

/** What the user says since the last answer. In a new conversation the instructions come first. Throws `event_invalid`. */
export function saidInResponse(
  { input, instructions }: ResponseRequest,
  { isNew }: { isNew: boolean },
): Said {
  const items: Item[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  const last = items.findLastIndex(({ role }) => role === 'assistant');
  const fresh = items.slice(last + 1);
  const rules = isNew ? [instructions ?? '', ...fresh.filter(isRule).map(textOf)] : [];
  const own = fresh.filter(({ role }) => role === 'user');
  const content = [...rules, ...own.map(textOf)].filter((text) => text !== '').join('\n\n');
  const attachments = own.flatMap(imagesOf);
  if (own.length > 0 && (content !== '' || attachments.length > 0)) return { content, attachments };
  throw new TroupeError('event_invalid', 'input: the last item must be a message of the user', {
    path: 'input',
  });
}

function isRule({ role }: Item): boolean {
  return role === 'system' || role === 'developer';
}

function textOf({ content }: Item): string {
  if (typeof content === 'string') return content;
  return (content ?? [])
    .flatMap(({ type, text }) => (type === 'input_text' && text ? [text] : []))
    .join('\n');
}

function imagesOf({ content }: Item): Said['attachments'] {
  if (typeof content === 'string') return [];
  return (content ?? []).flatMap(({ type, image_url: url }): Said['attachments'] => {
    if (type === 'input_text') return [];
    if (type === 'input_image' && url) return [imageAt(url)];
    throw new TroupeError('event_invalid', `input: parts of the type "${type}" are not taken`, {
      path: 'input',
    });
  });
}
