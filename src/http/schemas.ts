import * as z from 'zod';
import {
  AgentId,
  AttachmentName,
  Attachments,
  Author,
  BusyPolicy,
  Channel,
  COMMANDS,
  ConversationId,
  EventId,
  MAX_MESSAGE_ATTACHMENTS,
  MAX_RECIPIENTS,
  Mode,
  NamedSession,
  parseGiven,
  TenantId,
} from '../events/index.ts';
import type { AttachmentByAddress, NewAttachment } from '../library/troupe.ts';

/** Parts of requests that several routes share. Bodies are strict: an unknown key is an error, not ignored. */

/** An agent's id or pubkey; the runtime resolves it. */
const Recipient = z.string().min(1).max(128);
const MediaType = z.string().min(1).max(255);
const AttachmentFields = z.strictObject({
  name: AttachmentName.optional(),
  mediaType: MediaType.optional(),
  /** Base64. */
  data: z.string().optional(),
  /** Instead of `data`: fetched from this URL, if the agents file allows it. */
  url: z.string().min(1).max(2_048).optional(),
});
// An object, not a union, so that each problem has its path.
const NewAttachmentBody = AttachmentFields.superRefine(({ mediaType, data, url }, context) => {
  const problem = (field: string, message: string) =>
    context.addIssue({ code: 'custom', path: [field], message });
  if (data === undefined && url === undefined) problem('data', 'give data or a url');
  if (data !== undefined && url !== undefined) problem('url', 'give data or a url, not both');
  if (data !== undefined && mediaType === undefined) problem('mediaType', 'is missing');
  // The document omits these rules: from alternatives beside fields, generators would make types without the fields.
}) as unknown as z.ZodType<NewAttachment | AttachmentByAddress>;
export const NewEventBody = z.strictObject({
  /**
   * Ids with a ':' are accepted here, so that messages stored by an earlier version can be sent again; new ones are refused later.
   */
  id: EventId.meta({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._@-]{0,255}$',
    description:
      'Chosen by the client, so that a repeated request stores the event once. Ids with ":" are reserved for the runtime.',
  }).optional(),
  author: Author,
  // Checks the number of recipients before each of them.
  to: z.array(z.unknown()).max(MAX_RECIPIENTS).pipe(z.array(Recipient)).optional(),
  content: z.string(),
  attachments: z.array(NewAttachmentBody).max(MAX_MESSAGE_ATTACHMENTS).optional(),
  replyTo: EventId.optional(),
  /** What to do while an addressed agent is busy. Default: the agent's own setting. */
  whileBusy: BusyPolicy.optional(),
  /** False: for people only; no agent sees the message or is woken by it. */
  includeInContext: z.boolean().optional(),
  /** Where the message comes from. Default: `http`. Another name needs the scope `operate`. */
  channel: Channel.optional(),
  /** A session that an addressed agent should adopt. Needs the scope `operate`. */
  session: NamedSession.omit({ refused: true }).optional(),
  /** The mode of the conversation from this message on. Needs the scope `operate`. Default: it stays. */
  mode: Mode.optional(),
  /** Only the runtime writes the other fields of an event's context. */
  context: z.strictObject({ attachments: Attachments.optional() }).optional(),
});

/** Author of commands that name none. */
export const OPERATOR: Author = { kind: 'user', id: 'operator', name: 'Operator' };
/** Fields of all commands. The rest of the body is checked as the named `Command`. */
export const CommandRequest = z.looseObject({
  command: z.enum(COMMANDS),
  author: Author.default(OPERATOR),
});

/** A number in a query: decimal digits only. An empty value is refused; it does not count as 0. */
function whole(schema: z.ZodInt): z.ZodType<number, number | string> {
  const toNumber = (text: unknown) => (typeof text === 'string' && DIGITS.test(text) ? Number(text) : text);
  return z.preprocess(toNumber, schema) as unknown as z.ZodType<number, number | string>;
}
const DIGITS = /^\d{1,16}$/;

const TRUE = ['true', '1', 'yes', 'on', 'y', 'enabled'] as const;
const FALSE = ['false', '0', 'no', 'off', 'n', 'disabled'] as const;
/** A parameter of a query that is `true` or `false`. */
export const Flag = z.enum([...TRUE, ...FALSE]).transform((word) => TRUE.some((each) => each === word));
/** A seq in a query or a path: a whole number, at least 0. */
export const Seq = whole(z.int().nonnegative());
/** The `seq` of an event, at least 1. */
export const StoredSeq = whole(z.int().positive());
/** Index of an attachment within its message, from 0. */
export const AttachmentIndex = whole(
  z
    .int()
    .min(0)
    .max(MAX_MESSAGE_ATTACHMENTS - 1),
).default(0);
export const limitOf = (most: number) => whole(z.int().min(1).max(most));
/** Items of a list to skip: `next` of the previous answer. */
const Skip = Seq.default(0);
export const PageQuery = z.object({ skip: Skip });
export const Step = whole(z.int().positive()).optional();

/** Names separated by commas. */
export const Names = z
  .string()
  .max(4_000)
  .transform((text) => text.split(',').filter((name) => name !== ''))
  .optional();
/** Words to search for, trimmed. */
export const Words = z.string().trim().min(1).max(200).regex(/\S/);
/** The parameter `conversation` of a path. */
export const ConversationPath = z.object({ conversation: ConversationId });

const TurnName = z
  .string()
  .max(220)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}:[A-Za-z0-9][A-Za-z0-9_-]{0,63}:[1-9]\d*$/);
const RecordId = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/);
/** A parameter of a path. An invalid value gives 404, or 400 if the route would create the id. */
export interface PathParameter {
  /** Schema of its value. */
  schema: z.ZodType;
  /** A valid value, for the document. */
  example: string;
}

/** By the path segment before the parameter. */
export const PATH_PARAMETERS = {
  conversations: { schema: ConversationId, example: 'main' },
  agents: { schema: AgentId, example: 'writer' },
  turns: { schema: TurnName, example: 'main:writer:1' },
  compare: { schema: TurnName, example: 'main:writer:1' },
  diff: { schema: z.union([TurnName, z.literal('next')]), example: 'next' },
  keys: { schema: RecordId, example: 'abcdefghijkl' },
  webhooks: { schema: RecordId, example: 'abcdefghijkl' },
  people: { schema: z.string().regex(/^[A-Za-z0-9._@+:~-]{1,128}$/), example: 'ana' },
} as const satisfies Record<string, PathParameter>;

export type PathNoun = keyof typeof PATH_PARAMETERS;

/** Server administrators may name a tenant other than their own. */
export const TenantQuery = z.object({ tenant: TenantId.optional() });

/** Parses what a client sent. Throws `event_invalid`; `data` has the first problem's path and all problems. */
export function parseInput<T>(schema: z.ZodType<T>, input: unknown, what: string): T {
  return parseGiven(schema, input, what, 'event_invalid');
}
