import { randomFillSync } from 'node:crypto';
import { monotonicFactory } from 'ulid';
import * as z from 'zod';
import { TroupeError } from '../errors.ts';
import { messageFrom } from '../asking/asked.ts';
import {
  Author,
  BusyPolicy,
  Command,
  COMMANDS,
  ConversationId,
  EventDraft,
  type EventId,
  inputProblems,
  inputWords,
  nearestName,
  tryParse,
} from '../events/index.ts';
import type { NewMessage } from '../troupe.ts';

const IN_WORDS = { error: inputWords, reportInput: true } as const;
const AN_AUTHOR = 'such as { kind: "user", id: "ana", name: "Ana" }';

/** Parses an event of a caller. Throws `event_invalid` with the path of the first problem. */
export function parseDraft(input: unknown): EventDraft {
  const parsed = tryParse(EventDraft, input, IN_WORDS);
  if (parsed.success) return parsed.data;
  throw firstProblem(parsed.error, 'event');
}

/** Bodies are read later, when the message may be stored. */
const AttachmentShape = z
  .looseObject({ mediaType: z.string().optional(), url: z.string().optional() })
  .refine(({ data, url }) => (data === undefined) !== (url === undefined), 'give data, or a url')
  .refine(({ data, mediaType }) => data === undefined || mediaType !== undefined, {
    path: ['mediaType'],
    error: 'is missing: such as "image/png"',
  });
const MESSAGE_FIELDS = {
  id: z.string().optional(),
  author: Author,
  to: z.array(z.string()).optional(),
  content: z.string(),
  attachments: z.array(AttachmentShape).optional(),
  replyTo: z.string().optional(),
  whileBusy: BusyPolicy.optional(),
  untrusted: z.literal(true).optional(),
  includeInContext: z.boolean().optional(),
  channel: z.string().optional(),
  session: z.looseObject({}).optional(),
  forTools: z.unknown().optional(),
  storeForTools: z.boolean().optional(),
  context: z.looseObject({}).optional(),
} satisfies Record<keyof NewMessage, z.ZodType>;
const MessageShape = z.strictObject(MESSAGE_FIELDS);

/** What a program without types may give as a message. Throws `event_invalid` with what was expected. */
export function readMessage(given: unknown): NewMessage {
  if (typeof given === 'string') return messageFrom(given);
  if (typeof given !== 'object' || given === null)
    throw invalid('message', 'give a text, or an object such as { author, to, content }');
  const { author } = given as Partial<NewMessage>;
  if (typeof author !== 'object' || author === null)
    throw invalid('author', `is missing: say who speaks, ${AN_AUTHOR}`);
  const parsed = tryParse(MessageShape, given, IN_WORDS);
  if (!parsed.success) throw firstProblem(parsed.error, 'message');
  return given as NewMessage;
}

/** The same for a command and the person who gives it. An agent may be written with its `@`. */
export function readCommand(given: unknown, by: unknown): Command {
  if (typeof by !== 'object' || by === null)
    throw invalid('by', `is missing: say who gives the command, ${AN_AUTHOR}`);
  if (typeof given !== 'object' || given === null)
    throw invalid('command', 'give an object such as { command: "retry", turn: "c:bo:1" }');
  const { command, agent } = given as { command?: unknown; agent?: unknown };
  if (!COMMANDS.some((name) => name === command)) {
    const nearest = typeof command === 'string' ? nearestName(command, COMMANDS) : null;
    const hint = nearest ? ` Did you mean "${nearest}"?` : '';
    throw invalid(
      'command',
      `there is no command ${JSON.stringify(command)}.${hint} Known: ${COMMANDS.join(', ')}`,
    );
  }
  const plain = typeof agent === 'string' ? { ...given, agent: agent.replace(/^@/, '') } : given;
  const parsed = tryParse(Command, plain, IN_WORDS);
  if (parsed.success) return parsed.data;
  throw firstProblem(parsed.error, 'command');
}

/** `whole`: the name of the value itself. */
function firstProblem({ issues }: z.ZodError, whole: string): TroupeError {
  const [problem] = issues.flatMap(inputProblems);
  return invalid(problem?.path.map(String).join('.') || whole, problem?.message ?? 'is not valid');
}

function invalid(path: string, message: string): TroupeError {
  return new TroupeError('event_invalid', `${path}: ${message}`, { path });
}

export function conversationId(text: string): ConversationId {
  const parsed = ConversationId.safeParse(text, IN_WORDS);
  if (parsed.success) return parsed.data;
  throw firstProblem(parsed.error, 'conversation');
}

/** Random bytes are fetched in bulk, because a call for them costs more than the rest of an id. */
const pool = new Uint8Array(4_096);
let used = pool.length;

function fromPool(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return pool[used++]! / 256;
}

/** A ULID. The ids of one process increase, also within a millisecond. */
export const mintId = monotonicFactory(fromPool) as () => EventId;
