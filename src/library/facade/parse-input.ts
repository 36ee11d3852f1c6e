import { randomFillSync } from 'node:crypto';
import { monotonicFactory } from 'ulid';
import * as z from 'zod';
import { TroupeError } from '../../base/errors.ts';
import { messageFrom } from '../asking/ask.ts';
import {
  Author,
  BusyPolicy,
  Command,
  ConversationId,
  EventDraft,
  type EventId,
  isConversationId,
  Mode,
  parseGiven,
} from '../../events/index.ts';
import type { NewMessage } from '../troupe.ts';

const AN_AUTHOR = 'such as { kind: "user", id: "ana", name: "Ana" }';

/** Parses an event of a caller. Throws `event_invalid`. */
export function parseDraft(input: unknown): EventDraft {
  return parseGiven(EventDraft, input, 'event', 'event_invalid');
}

const Bytes = z.union([z.string(), z.instanceof(Uint8Array)], { error: 'give bytes, or a text in base64' });
/** Bodies are read later, once the message may be stored. */
const AttachmentShape = z
  .looseObject({ mediaType: z.string().optional(), data: Bytes.optional(), url: z.string().optional() })
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
  session: z.looseObject({ agent: z.string() }).optional(),
  mode: Mode.optional(),
  reply: z.looseObject({ schema: z.looseObject({}) }).optional(),
  forTools: z.unknown().optional(),
  storeForTools: z.boolean().optional(),
  context: z.looseObject({}).optional(),
} satisfies Record<keyof NewMessage, z.ZodType>;
const MessageShape = z.strictObject(MESSAGE_FIELDS);

/** A message as a program without types may give it. Throws `event_invalid`, which says what was expected. */
export function readMessage(given: unknown): NewMessage {
  if (typeof given === 'string') return messageFrom(given);
  if (typeof given !== 'object' || given === null)
    throw invalid('message', 'give a text, or an object such as { author, to, content }');
  const { author } = given as Partial<NewMessage>;
  if (typeof author !== 'object' || author === null)
    throw invalid('author', `is missing: say who speaks, ${AN_AUTHOR}`);
  parseGiven(MessageShape, given, 'message', 'event_invalid');
  return given as NewMessage;
}

const Giver = z.object({ by: Author });

/** The same for a command and the person who gives it. An agent may be written with `@`. */
export function readCommand(given: unknown, by: unknown): { command: Command; by: Author } {
  if (typeof by !== 'object' || by === null)
    throw invalid('by', `is missing: say who gives the command, ${AN_AUTHOR}`);
  if (typeof given !== 'object' || given === null)
    throw invalid('command', 'give an object such as { command: "retry", turn: "c:bo:1" }');
  const { agent } = given as { agent?: unknown };
  const plain = typeof agent === 'string' ? { ...given, agent: agent.replace(/^@/, '') } : given;
  const command = parseGiven(Command, plain, 'command', 'event_invalid');
  return { command, ...parseGiven(Giver, { by }, 'by', 'event_invalid') };
}

export function invalid(path: string, message: string): TroupeError {
  return new TroupeError('event_invalid', `${path}: ${message}`, { path });
}

/** Throws `event_invalid`. */
export function conversationId(text: string): ConversationId {
  return isConversationId(text) ? text : parseGiven(ConversationId, text, 'conversation', 'event_invalid');
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
