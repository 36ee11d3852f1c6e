import type { Context } from 'hono';
import type { Answer, CommandInput, NewMessage, Troupe } from '../library/troupe.ts';
import { addressed, nobodyAnswers } from '../library/asking/ask.ts';
import { type ChatChange, openChat } from '../library/asking/chat.ts';
import { type Author, type Event, type Attachment, ConversationId } from '../events/index.ts';
import { admitMessage, checkScope } from './permissions.ts';
import type { Caller } from './caller.ts';
import { checkWords } from './read-json.ts';
import { TroupeError } from '../base/errors.ts';
import { createHash } from 'node:crypto';
import type { Principal } from '../library/access/index.ts';

/** What a client of another protocol says, and in which conversation. */
export interface Spoken extends Pick<
  NewMessage,
  'id' | 'to' | 'content' | 'attachments' | 'reply' | 'whileBusy'
> {
  /** Id of the conversation. */
  conversation: string;
  /** Name of the door: `openai`, `ag-ui`, … */
  channel: string;
}

/** A stored message, and the changes that follow from it. */
export interface Exchange {
  /** Seq of the message. */
  seq: number;
  /** Time of the message, ms since the epoch. */
  at: number;
  /** Yields all changes until the answer is complete, and returns the answer. */
  changes: (signal: AbortSignal) => AsyncGenerator<ChatChange, Answer>;
}

/**
 * Sends what a client says, as its caller, and returns what follows. The route has the scope `write`; this also needs `read`.
 * `before` runs once the message is admitted. Throws as `admitMessage` and `send` do, and `agent_unknown` if nobody is to answer.
 */
export async function beginExchange(
  caller: Caller,
  { conversation, ...said }: Spoken,
  before?: () => Promise<unknown>,
): Promise<Exchange> {
  const { troupe, principal } = caller;
  checkScope(principal, 'read');
  const message = addressed({ ...said, author: authorOf(caller) }, troupe.agents);
  admitMessage(caller, conversation, message);
  await before?.();
  const { event } = await troupe.send(conversation, message);
  // From here on the request only waits.
  caller.parked();
  if (event.to.length === 0) throw nobodyAnswers();
  const { seq, at } = event;
  return { seq, at, changes: (signal) => changesSince(troupe, { conversation, seq }, signal) };
}

/** The author of callers without one of their own. */
const CLIENT = { kind: 'user', id: 'user', name: 'User' } as const;

/** The author as which a client of another protocol writes. */
export function authorOf({ principal }: Pick<Caller, 'principal'>): Author {
  return principal.author ?? CLIENT;
}

/** Gives a command on behalf of the client. Throws `event_too_large` as for a message. */
export async function giveCommand(caller: Caller, command: CommandInput): Promise<Event> {
  checkWords(JSON.stringify(command));
  const event = await caller.troupe.command(command, authorOf(caller));
  caller.parked();
  return event;
}

/** What followed and still follows from an event, as changes of a chat. */
export function changesSince(
  troupe: Troupe,
  { conversation, seq }: { conversation: string; seq: number },
  signal: AbortSignal,
): AsyncGenerator<ChatChange, Answer> {
  return openChat(troupe, conversation).follow(seq, signal);
}

/** Waits for the whole answer, until its reader leaves or `ends` aborts. */
export async function wholeAnswer(
  { req }: Context,
  { changes }: Exchange,
  { ends, see = () => {} }: { ends: AbortSignal; see?: (change: ChatChange) => void },
): Promise<Answer> {
  const going = changes(AbortSignal.any([ends, req.raw.signal]));
  let next = await going.next();
  for (; !next.done; next = await going.next()) see(next.value);
  return next.value;
}

/** Most bytes of files within one answer. Further files are only named. */
const MOST_BYTES = 4 * 1_024 * 1_024;

/** An attachment of a message. `base64` is null if its bytes are not stored, as after an import, or the answer has no more room. */
export interface EventFile {
  /** Its media type. */
  mediaType: string;
  /** Its name, if it has one. */
  name: string | undefined;
  /** Its size. */
  bytes: number;
  /** Its bytes. */
  base64: string | null;
}

/** Returns a reader of attachments for one answer, whose room they share: earlier ones leave less for later ones. */
export function filesIn(troupe: Pick<Troupe, 'attachment'>): (event: Event) => Promise<EventFile[]> {
  let left = MOST_BYTES;
  return async ({ kind, body, conversation, seq }) => {
    if (kind !== 'message' && kind !== 'notice') return [];
    const files: EventFile[] = [];
    for (const [index, given] of (body.attachments ?? []).entries()) {
      const bytes = sizeOf(given);
      const data = bytes > left ? null : await readOrNull(troupe, conversation, { seq, index });
      if (data) left -= bytes;
      const base64 = data && Buffer.from(data).toString('base64');
      files.push({ mediaType: given.mediaType, name: given.name, bytes, base64 });
    }
    return files;
  };
}

function sizeOf(attachment: Attachment): number {
  return attachment.type === 'text' ? Buffer.byteLength(attachment.text) : attachment.bytes;
}

async function readOrNull(
  troupe: Pick<Troupe, 'attachment'>,
  conversation: string,
  { seq, index }: { seq: number; index: number },
): Promise<Uint8Array | null> {
  try {
    return (await troupe.attachment(conversation, seq, index)).data;
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'event_invalid') return null;
    throw error;
  }
}

const MAX_ID = 128;
/** Least characters of a hash that tell names apart. */
const LEAST_NAME = 16;

/** A client's idempotency key, made unique for this caller: other callers may use the same key. */
export function callersKey({ id }: Principal, ...given: readonly string[]): string {
  return digest([id, ...given]);
}

function digest(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}

/** A name that is too long is replaced by its hash, so that different names remain different. */
function fitted(name: string, room: number): string {
  if (name.length <= room) return name;
  if (room >= LEAST_NAME) return digest([name]).slice(0, room);
  throw new TroupeError(
    'event_invalid',
    'name the conversation: the prefix granted to this caller leaves no room for a name',
    {
      path: 'conversation',
    },
  );
}

/** The id of a new conversation that the caller may write to. Throws `event_invalid` if the caller may not begin one. */
export function newConversation({ conversations }: Principal, name: string): string {
  const patterns = conversations ?? ['*'];
  const prefix = patterns.find((pattern) => pattern.endsWith('*'))?.slice(0, -1);
  if (prefix !== undefined) return ConversationId.parse(`${prefix}${fitted(name, MAX_ID - prefix.length)}`);
  const [only, ...others] = patterns;
  if (only !== undefined && others.length === 0) return only;
  throw new TroupeError('event_invalid', 'name the conversation: this caller may not begin a new one', {
    path: 'conversation',
  });
}
