import * as z from 'zod';
import { type AttachmentByAddress, type NewAttachment, TroupeError } from '../troupe.ts';
import type { AgUiMessage, AgUiWords } from './protocol.ts';

const Source = z.object({
  type: z.string(),
  value: z.string().max(32 * 1_024 * 1_024),
  mimeType: z.string().max(255).nullish(),
});
const Part = z.object({
  id: z.string().optional(),
  type: z.string(),
  text: z.string().nullish(),
  source: Source.nullish(),
  /** For the type `binary`, which clients before 1.0 send. */
  mimeType: z.string().max(255).nullish(),
  data: z.string().nullish(),
  url: z.string().nullish(),
  filename: z.string().max(255).nullish(),
});
type Part = z.infer<typeof Part>;

const Call = z.object({
  id: z.string(),
  type: z.literal('function').default('function'),
  function: z.object({ name: z.string(), arguments: z.string() }),
});

const Words = z.object({
  id: z.string().max(1_000),
  role: z.enum(['developer', 'system', 'assistant', 'user', 'tool', 'reasoning']),
  name: z.string().nullish(),
  content: z.union([z.string(), z.array(Part)]).nullish(),
  toolCalls: z.array(Call).nullish(),
  toolCallId: z.string().nullish(),
  subagentRunId: z.string().nullish(),
});
/** A message as a client has it. Its other fields, and the content of activities, are not read. */
const ClientMessage = z.union([
  Words,
  Words.extend({ role: z.literal('activity'), content: z.unknown().optional() }),
]);
export type ClientMessage = z.infer<typeof ClientMessage>;

const Resumption = z.looseObject({
  interruptId: z.string().min(1).max(256),
  status: z.enum(['resolved', 'cancelled']),
  payload: z.unknown().optional(),
});
export type Resumption = z.infer<typeof Resumption>;

/** The body of a run: `RunAgentInput`. `state`, `tools`, `context` and `forwardedProps` are not used. */
export const RunInput = z.looseObject({
  threadId: z.string().min(1).max(1_000),
  runId: z.string().min(1).max(1_000),
  parentRunId: z.string().max(1_000).nullish(),
  messages: z.array(ClientMessage).max(10_000),
  tools: z.array(z.unknown()).max(1_000).nullish(),
  resume: z.array(Resumption).max(256).nullish(),
});
export type RunInput = z.infer<typeof RunInput>;

/** The message of the person who sent the input. */
export interface Said {
  /** Idempotency key of the message. */
  id: string;
  content: string;
  attachments: (NewAttachment | AttachmentByAddress)[];
}

/** The id in the log of a client's message: its own, or the one under which it was stored. */
export function idIn(known: { has: (id: string) => boolean }, id: string): string | undefined {
  return [id, eventIdOf(id)].find((each) => known.has(each));
}

/** The id under which a client's message is stored. */
function eventIdOf(id: string): string {
  const isEventId = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,255}$/.test(id);
  return isEventId ? id : `ag-ui-${id.replaceAll(/[^A-Za-z0-9._@-]/g, '-')}`.slice(0, 256);
}

/**
 * The user's newest text: all messages after the last one that the log has or somebody else wrote, as one message. Null if
 * there are none, or if the log already has them. Throws `event_invalid` for a message without text and attachments.
 */
export function saidIn(
  messages: readonly ClientMessage[],
  known: { has: (id: string) => boolean },
): Said | null {
  const fresh: ClientMessage[] = [];
  for (const message of messages.toReversed()) {
    if (message.role === 'user') {
      if (idIn(known, message.id) !== undefined) break;
      fresh.unshift(message);
    } else if (fresh.length > 0 && (message.role === 'assistant' || message.role === 'tool')) break;
  }
  const last = fresh.at(-1);
  if (!last) return null;
  const content = fresh
    .map((message) => textOf(message.content))
    .filter((text) => text !== '')
    .join('\n\n');
  const attachments = fresh.flatMap(attachmentsOf);
  if (content === '' && attachments.length === 0) throw invalid('the message of the user is empty');
  return { id: eventIdOf(last.id), content, attachments };
}

/** The text of an AG-UI content, which is a string or a list of parts. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return partsOf(content)
    .flatMap(({ type, text }) => (type === 'text' && text ? [text] : []))
    .join('\n');
}

function partsOf(content: unknown): Part[] {
  return Array.isArray(content) ? (content as Part[]) : [];
}

/** A client's message in the form in which snapshots return it. */
function givenBack({ content, ...message }: ClientMessage): object {
  const known = Object.entries(message).filter(([, value]) => value !== null && value !== undefined);
  return {
    ...Object.fromEntries(known),
    content: typeof content === 'string' ? content : partsOf(content),
  };
}

function attachmentsOf({ content }: ClientMessage): Said['attachments'] {
  return partsOf(content).flatMap(attachmentOf);
}

function attachmentOf({ type, source, data, url, mimeType, filename }: Part): Said['attachments'] {
  if (type === 'text') return [];
  const name = filename ? { name: filename } : {};
  const from =
    source ??
    (data
      ? { type: 'data', value: data, mimeType }
      : url
        ? { type: 'url', value: url, mimeType }
        : { type: 'none', value: '' });
  const mediaType = from.mimeType ? { mediaType: from.mimeType } : {};
  if (from.type === 'url') return [{ url: from.value, ...mediaType, ...name }];
  if (from.type === 'data' && from.mimeType) return [{ data: from.value, mediaType: from.mimeType, ...name }];
  throw invalid(`a part of the type "${type}" needs a source with data and mimeType, or a url`);
}

function invalid(message: string): TroupeError {
  return new TroupeError('event_invalid', `messages: ${message}`, { path: 'messages' });
}

/**
 * What a client already has of a run's content, from earlier runs that were interrupted or that waited. It is not sent again.
 * By the ids of messages and calls.
 */
export interface Had {
  texts: Map<string, string>;
  args: Map<string, string>;
  results: Map<string, string>;
  reasoning: Map<string, string>;
}

export function hadNothing(): Had {
  return { texts: new Map(), args: new Map(), results: new Map(), reasoning: new Map() };
}

/**
 * The part of `text` that the client lacks; `said` ends with `text`. Null if the client has something else. Entries are
 * removed from `had` unless they match completely.
 */
export function lacking(
  had: Map<string, string>,
  id: string,
  { said, text }: { said: string; text: string },
): string | null {
  const own = had.get(id);
  if (own === undefined) return text;
  const at = said.length - text.length;
  if (own.length >= said.length && own.startsWith(text, at)) return '';
  had.delete(id);
  const rest = own.slice(at);
  return own.length < said.length && text.startsWith(rest) ? text.slice(rest.length) : null;
}

interface Comparison {
  /** The messages before those of the run, in the form that snapshots have from now on. */
  base: AgUiMessage[];
  /**
   * The snapshots that give the client these messages. None if it already has them. Two if the order differs: a client keeps
   * the order of what it has, so misplaced messages must first be removed.
   */
  snapshots: AgUiMessage[][];
  had: Had;
}

/** Compares a client's messages with those of the log, up to the message to answer. */
export function compareWith(
  client: readonly ClientMessage[],
  log: readonly AgUiMessage[],
  { target, isWhole }: { target: string | null; isWhole: boolean },
): Comparison {
  const isInLog = idsOf(log);
  const own = client.filter((message) => isOfSystem(message) && !isInLog(message));
  const shared = client.filter(
    (message) => (isOfSystem(message) ? isInLog(message) : isShared(message)) && !message.subagentRunId,
  );
  const at = target === null ? -1 : client.findLastIndex((message) => isThe(message, target));
  const end = at < 0 ? shared.length : shared.findLastIndex((message) => isThe(message, target)) + 1;
  const first = log[0]?.id;
  const begin = isWhole
    ? 0
    : Math.max(
        0,
        shared.findIndex(({ id }) => id === first),
      );
  const mine = new Map(client.map((message) => [message.id, message]));
  const base = [
    ...[...own, ...shared.slice(0, begin)].map((message) => givenBack(message) as AgUiMessage),
    ...log.map((message) => theirs(mine.get(message.id), message)),
  ];
  const had = hadNothing();
  for (const { id, role, content } of client)
    if (role === 'reasoning') had.reasoning.set(id, textOf(content));
  const present = shared.slice(begin, end);
  const isSame = present.length === log.length && present.every((message, n) => isEqual(message, log[n]!));
  if (!isSame) return { base, snapshots: snapshotsFor(client, base), had };
  for (const message of client.slice(at < 0 ? client.length : at + 1)) addTo(had, message);
  return { base, snapshots: [], had };
}

function isOfSystem({ role }: ClientMessage): boolean {
  return role === 'system' || role === 'developer';
}

function isShared({ role }: ClientMessage): boolean {
  return role === 'user' || role === 'assistant' || role === 'tool';
}

function isThe({ id, role }: ClientMessage, target: string | null): boolean {
  return role === 'user' && target !== null && (id === target || eventIdOf(id) === target);
}

function idsOf(log: readonly AgUiMessage[]): (message: ClientMessage) => boolean {
  const ids = new Set(log.map(({ id }) => id));
  return ({ id }) => ids.has(id);
}

/** The client's own message may contain more than the log's, such as images. */
function theirs(mine: ClientMessage | undefined, message: AgUiMessage): AgUiMessage {
  if (mine?.role !== 'user' || message.role !== 'user' || !isEqual(mine, message)) return message;
  return givenBack(mine) as AgUiMessage;
}

function isEqual(mine: ClientMessage, message: AgUiMessage): boolean {
  if (mine.id !== message.id || mine.role !== message.role) return false;
  if (textOf(mine.content) !== textOf(message.content)) return false;
  const calls = (message as AgUiWords).toolCalls ?? [];
  const own = mine.toolCalls ?? [];
  return (
    own.length === calls.length &&
    calls.every(
      ({ id, function: { arguments: args } }, n) => own[n]?.id === id && own[n].function.arguments === args,
    )
  );
}

function snapshotsFor(client: readonly ClientMessage[], base: AgUiMessage[]): AgUiMessage[][] {
  const wanted = new Set(base.map(({ id }) => id));
  const kept = client.filter(({ id }) => wanted.has(id)).map(({ id }) => id);
  const differs = kept.findIndex((id, n) => base[n]?.id !== id);
  return differs < 0 ? [base] : [base.slice(0, differs), base];
}

function addTo(had: Had, { id, role, content, toolCalls, toolCallId }: ClientMessage): void {
  if (role === 'tool') had.results.set(toolCallId ?? '', textOf(content));
  else if (role === 'user' || role === 'assistant') had.texts.set(id, textOf(content));
  for (const call of toolCalls ?? []) had.args.set(call.id, call.function.arguments);
}
