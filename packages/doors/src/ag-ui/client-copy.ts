import type { AgUiMessage, AgUiWords } from './protocol.ts';
import { type ClientMessage, eventIdOf, givenBack, textOf } from './run-input.ts';

/**
 * What a client has of what a run tells, from earlier runs that it has lost or that waited for it. It is not told again.
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
 * What the client lacks of `text`, with which `said` ends. Null: it has something else. What it has is forgotten as soon as
 * it is not all.
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
  /** The messages before what the run tells, as snapshots have them from now on. */
  base: AgUiMessage[];
  /**
   * The snapshots that make them the client's. None: it has them. Two: a client keeps the order of what it has, so what is
   * not where it belongs has to be taken away first.
   */
  snapshots: AgUiMessage[][];
  had: Had;
}

/** Compares the messages of a client with those of the log, up to the message that is answered. */
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

/** The client's own message may have more than the log, such as pictures. */
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
