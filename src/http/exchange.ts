import type { Context } from 'hono';
import type { Answer, CommandInput, NewMessage, Troupe } from '../library/troupe.ts';
import { addressed, nobodyAnswers } from '../library/asking/ask.ts';
import { type ChatChange, openChat } from '../library/asking/chat.ts';
import type { Author, Event } from '../events/index.ts';
import { admitMessage, checkScope } from './permissions.ts';
import type { Caller } from './caller.ts';
import { checkWords } from './read-json.ts';

/** What a client of another protocol says, and where. */
export interface Spoken extends Pick<
  NewMessage,
  'id' | 'to' | 'content' | 'attachments' | 'reply' | 'whileBusy'
> {
  /** Id of the conversation. */
  conversation: string;
  /** The door: `openai`, `ag-ui`, … */
  channel: string;
}

/** A message that was stored, and the changes that follow from it. */
export interface Exchange {
  /** Seq of the message. */
  seq: number;
  /** Ms since the epoch. */
  at: number;
  /** What happens until it is over. */
  changes: (signal: AbortSignal) => AsyncGenerator<ChatChange, Answer>;
}

/**
 * Sends what a client says, as its caller, and gives what comes of it. Besides the scope `write`, of the route, it needs
 * `read`. `before` runs once the message is admitted. Throws as `admitMessage` and `send` do, and `agent_unknown` if nobody is
 * to answer.
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
  // What follows is waiting.
  caller.parked();
  if (event.to.length === 0) throw nobodyAnswers();
  const { seq, at } = event;
  return { seq, at, changes: (signal) => changesSince(troupe, { conversation, seq }, signal) };
}

/** The author of callers without one of their own. */
const CLIENT = { kind: 'user', id: 'user', name: 'User' } as const;

/** As whom a client of another protocol writes. */
export function authorOf({ principal }: Pick<Caller, 'principal'>): Author {
  return principal.author ?? CLIENT;
}

/** Gives a command as the client. Throws `event_too_large` as for a message. */
export async function giveCommand(caller: Caller, command: CommandInput): Promise<Event> {
  checkWords(JSON.stringify(command));
  const event = await caller.troupe.command(command, authorOf(caller));
  caller.parked();
  return event;
}

/** What has come and comes of an event, as changes of a chat. */
export function changesSince(
  troupe: Troupe,
  { conversation, seq }: { conversation: string; seq: number },
  signal: AbortSignal,
): AsyncGenerator<ChatChange, Answer> {
  return openChat(troupe, conversation).follow(seq, signal);
}

/** Waits for the whole answer, as long as its reader does, and no longer than `ends`. */
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
