import * as z from 'zod';
import { NewKey, RotateKey } from '../access/index.ts';
import { TroupeError } from '../errors.ts';
import {
  AgentId,
  AttachmentName,
  Attachments,
  Author,
  BusyPolicy,
  Command,
  COMMANDS,
  ConversationId,
  EventId,
  MAX_MESSAGE_ATTACHMENTS,
  MAX_RECIPIENTS,
  tryParse,
  TenantId,
} from '../events/index.ts';
import type { AttachmentByAddress, NewAttachment } from '../troupe.ts';

/** What clients send. Bodies are strict: an unknown key is a mistake to be told, not to be dropped. */

/** An agent's id or pubkey; who that is, the runtime knows. */
const Recipient = z.string().min(1).max(128);
const MediaType = z.string().min(1).max(255);
const AttachmentFields = z.strictObject({
  name: AttachmentName.optional(),
  mediaType: MediaType.optional(),
  /** Base64. */
  data: z.string().optional(),
  /** In its stead: fetched from there, where the agents file allows it. */
  url: z.string().min(1).max(2_048).optional(),
});
// One object and not a union, so that a problem is told with its path.
const NewAttachmentBody = AttachmentFields.superRefine(({ mediaType, data, url }, context) => {
  const problem = (field: string, message: string) =>
    context.addIssue({ code: 'custom', path: [field], message });
  if (data === undefined && url === undefined) problem('data', 'give data, or a url');
  if (data !== undefined && url !== undefined) problem('url', 'give data or a url, not both');
  if (data !== undefined && mediaType === undefined) problem('mediaType', 'is missing');
}).meta({
  // The same for those who read the description.
  oneOf: [{ required: ['data'] }, { required: ['url'] }],
  dependentRequired: { data: ['mediaType'] },
}) as unknown as z.ZodType<NewAttachment | AttachmentByAddress>;
export const NewEventBody = z.strictObject({
  /** One with a ':' is read, so that whoever stored one with an earlier version can send it again; a new one is refused. */
  id: EventId.meta({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._@-]{0,255}$',
    description:
      'Of your own, so that sending it again stores it once. Ids with a ":" are those of the runtime.',
  }).optional(),
  author: Author,
  // Counted before any of them is looked at.
  to: z.array(z.unknown()).max(MAX_RECIPIENTS).pipe(z.array(Recipient)).optional(),
  content: z.string(),
  attachments: z.array(NewAttachmentBody).max(MAX_MESSAGE_ATTACHMENTS).optional(),
  replyTo: EventId.optional(),
  /** What becomes of it where an addressed agent is at work; default: as the agent is set. */
  whileBusy: BusyPolicy.optional(),
  /** The rest of an event's context is the runtime's to write. */
  context: z.strictObject({ attachments: Attachments.optional() }).optional(),
});

/** Who asks when a command does not say. */
export const OPERATOR: Author = { kind: 'user', id: 'operator', name: 'Operator' };
/** What all commands share; the rest of the body is checked as the `Command` it names. */
export const CommandRequest = z.looseObject({
  command: z.enum(COMMANDS),
  author: Author.default(OPERATOR),
});

/** A fork is of a turn, or of a conversation and a seq; what carries it out refuses all else. */
const FORK_RULE = {
  oneOf: [
    { required: ['turn'], properties: { conversation: false, seq: false } },
    { required: ['conversation', 'seq'], properties: { turn: false } },
  ],
};
/** Every command in full, for those who read the API's description. */
export const AnyCommand = z.union(
  Command.options.map((option: z.ZodObject) => {
    const extended = option.extend({ author: Author.optional() });
    return 'as' in option.shape ? extended.meta(FORK_RULE) : extended;
  }),
);

/** A number in an address: decimal digits and nothing else. An empty value is none, and not 0. */
function whole(schema: z.ZodInt) {
  return z.preprocess(
    (text) => (typeof text === 'string' && DIGITS.test(text) ? Number(text) : text),
    schema,
  );
}
const DIGITS = /^\d{1,16}$/;
const TRUE = ['true', '1', 'yes', 'on', 'y', 'enabled'] as const;
const FALSE = ['false', '0', 'no', 'off', 'n', 'disabled'] as const;
const Flag = z.enum([...TRUE, ...FALSE]).transform((word) => TRUE.some((each) => each === word));
const Seq = whole(z.int().nonnegative());
const limitOf = (most: number) => whole(z.int().min(1).max(most));
export const EventsQuery = z.object({
  after: Seq.default(0),
  limit: limitOf(5_000).default(500),
});
export const ConversationsQuery = z.object({
  limit: limitOf(5_000).optional(),
  /** The `next` of the page before. */
  before: z
    .string()
    .max(200)
    .regex(/^\d{1,15}:./, 'is no place in a list: take the "next" of a page')
    .optional(),
});
/** How many of a list to leave out: the `next` of the answer before. */
const Skip = Seq.default(0);
export const PageQuery = z.object({ skip: Skip });
export const TasksQuery = z.object({ open: Flag.optional(), skip: Skip });
export const StepQuery = z.object({ step: whole(z.int().positive()).optional(), skip: Skip });
export const DiffQuery = z.object({
  stepA: whole(z.int().positive()).optional(),
  stepB: whole(z.int().positive()).optional(),
});
export const CostQuery = z.object({
  vendor: z.enum(['anthropic', 'openai', 'gemini', 'deepseek']).optional(),
  skip: Skip,
});
export const BudgetQuery = z.object({
  conversation: ConversationId.optional(),
  agent: z.string().optional(),
});
export const StreamQuery = z.object({ conversation: ConversationId.optional(), after: Seq.optional() });
export const ImportQuery = z.object({
  conversation: ConversationId.optional(),
  agent: z.string().min(1).optional(),
  format: z.string().min(1).optional(),
  file: z.string().min(1).max(255).optional(),
});
export const ExportQuery = z.object({
  /** With the conversations of what was delegated in it. */
  threads: Flag.optional(),
  /** `html`: one page to read, without threads. */
  format: z.enum(['jsonl', 'html']).default('jsonl'),
});

/** Names with commas between them. */
const Names = z
  .string()
  .max(4_000)
  .transform((text) => text.split(',').filter((name) => name !== ''))
  .optional();
/** Words to look for; blanks around them count for nothing. */
const Words = z.string().trim().min(1).max(200).regex(/\S/);
export const OverviewQuery = z.object({ limit: limitOf(64).default(50) });
/** `at`: as it was after this event. */
export const SnapshotQuery = z.object({ at: Seq.optional() });
export const RowsQuery = z.object({
  before: Seq.optional(),
  after: Seq.optional(),
  limit: limitOf(500).default(200),
  agent: Names,
  kind: Names,
  not: Names,
  level: z.enum(['talk', 'work', 'noise', 'problem']).optional(),
  turn: z.string().min(1).max(220).optional(),
  q: Words.optional(),
});
export const SearchQuery = z.object({ q: Words, limit: limitOf(100).default(20) });
/** How many events of a conversation and its threads the client has kept, or that it wants none. */
export const DeleteQuery = z.object({ exported: z.union([z.literal('none'), Seq]) });
export const ConversationPath = z.object({ conversation: ConversationId });

const TurnName = z
  .string()
  .max(220)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}:[A-Za-z0-9][A-Za-z0-9_-]{0,63}:[1-9]\d*$/);
const RecordId = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/);
/** What stands in a path, by the word before it. What does not fit is no id of anything: 404, or 400 where it would be made. */
export const PATH_PARAMETERS = {
  conversations: { schema: ConversationId, example: 'main' },
  agents: { schema: AgentId, example: 'writer' },
  turns: { schema: TurnName, example: 'main:writer:1' },
  diff: { schema: z.union([TurnName, z.literal('next')]), example: 'next' },
  keys: { schema: RecordId, example: 'abcdefghijkl' },
  webhooks: { schema: RecordId, example: 'abcdefghijkl' },
} as const satisfies Record<string, { schema: z.ZodType; example: string }>;

/** Of those who run the server: whose key it is to be. */
export const NewKeyBody = NewKey.extend({ tenant: TenantId.optional() });
export const RotateKeyBody = RotateKey;
export const KeysQuery = z.object({ tenant: TenantId.optional() });

const MAX_PROBLEMS = 20;

/** Parses what a client sent. Throws `event_invalid`; `data` has the first path and every problem. */
export function parseInput<T>(schema: z.ZodType<T>, input: unknown, what: string): T {
  const parsed = tryParse(schema, input, { reportInput: true });
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.slice(0, MAX_PROBLEMS).flatMap(problemsOf);
  const told = problems.map(({ path, message }) => `${path || what}: ${message}`).join('; ');
  throw new TroupeError('event_invalid', told, { path: problems[0]?.path ?? '', problems });
}

function problemsOf(issue: z.core.$ZodIssue): { path: string; message: string }[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys
      .slice(0, MAX_PROBLEMS)
      .map((key) => ({ path: [...issue.path, key].join('.').slice(0, 200), message: 'is not known here' }));
  }
  const isMissing = issue.input === undefined && issue.path.length > 0;
  return [{ path: issue.path.join('.'), message: isMissing ? 'is missing' : issue.message }];
}
