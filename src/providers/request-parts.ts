import { createHash } from 'node:crypto';
import { parseTurnId, type PromptMessage } from '../events/index.ts';
import type { ModelRequest } from './provider.ts';

/** A piece of what a model is shown, with the name under which a difference in it is told. */
export interface RequestPart {
  name: string;
  text: string;
}

/**
 * All that a model is shown, in order, without what differs from run to run although nobody said anything else: the
 * keys of fences, the times and turn ids that Troupe writes, the ids of calls. What people and tools said stays.
 */
export function requestParts(request: ModelRequest): RequestPart[] {
  const { trace, model, session, tools, replySchema, messages } = request;
  const calls = new Map<string, number>();
  const callName = (id: string) => {
    const number = calls.get(id) ?? calls.size + 1;
    calls.set(id, number);
    return `call ${number}`;
  };
  const steady = steadier(trace.conversation);
  return [
    { name: 'purpose', text: trace.purpose ?? 'turn' },
    { name: 'model', text: model },
    ...(session ? [{ name: 'session', text: session.kind }] : []),
    ...tools.map(({ name, description, parameters }, index) => ({
      name: `tools[${index}] (${name})`,
      text: `${description}\n${JSON.stringify(parameters)}`,
    })),
    ...(replySchema ? [{ name: 'replySchema', text: JSON.stringify(replySchema) }] : []),
    ...messages.map((message, index) => ({
      name: `messages[${index}] (${message.role})`,
      text: steady(messageText(message, callName)),
    })),
  ];
}

function messageText(message: PromptMessage, callName: (id: string) => string): string {
  const { content } = message;
  if (message.role === 'tool') {
    return `[${callName(message.call)}: ${message.name}${message.failed ? ' failed' : ''}]\n${content}`;
  }
  if (message.role === 'user')
    return [content, ...(message.images ?? []).map(({ hash }) => `[image ${hash}]`)].join('\n');
  if (message.role !== 'assistant') return content;
  const calls = (message.calls ?? []).map(({ id, name, args }) => `[${callName(id)}: ${name}] ${args}`);
  const thought = message.reasoning ? [`[reasoning] ${message.reasoning.text}`] : [];
  return [...thought, content, ...calls].join('\n');
}

const FENCE_KEY = /(<\/?[a-z]+)-[0-9a-f]{8}>/g;
const MINUTE = /\b\d{4}-\d\d-\d\dT\d\d:\d\dZ/g;
/** The time is told when the minute has changed, and a reminder may hold nothing else. */
const TIME_OF_REMINDER = /(<reminder-key>\n)time: time\n/g;
const EMPTY_REMINDER = /(?<!\n)\n*<reminder-key>\n<\/reminder-key>/g;
/** The day in a line of memories: `#12 Ana (2026-02-11): `. */
const DAY_OF_LINE = /^(#\d+ .*?\()\d{4}-\d\d-\d\d\): /gm;

function steadier(conversation: string): (text: string) => string {
  const name = conversation.replace(/[^\w]/g, (mark) => `\\${mark}`);
  const turn = new RegExp(`(?<![\\w.@:-])${name}:([\\w-]+):(\\d+)`, 'g');
  return (text) =>
    text
      .replace(FENCE_KEY, '$1-key>')
      .replace(MINUTE, 'time')
      .replace(TIME_OF_REMINDER, '$1')
      .replace(EMPTY_REMINDER, '')
      .replace(DAY_OF_LINE, '$1day): ')
      .replace(turn, 'conversation:$1:$2');
}

export function requestKey(parts: readonly RequestPart[]): string {
  const hash = createHash('sha256');
  for (const { name, text } of parts) hash.update(`${name}\n${text.length}\n${text}\n`);
  return hash.digest('hex').slice(0, 32);
}

/** Where in a conversation a request stands, whatever the conversation is called. */
export function placeOf({ turn, step, call }: ModelRequest['trace']): string {
  return `turn ${parseTurnId(turn)?.number ?? turn}, step ${step}, call ${call}`;
}

/** How many parts two requests begin with alike. */
export function alikeParts(a: readonly RequestPart[], b: readonly RequestPart[]): number {
  const index = a.findIndex(({ name, text }, at) => b[at]?.name !== name || b[at].text !== text);
  return index < 0 ? a.length : index;
}

const BEFORE_CHARS = 30;
const SHOWN_CHARS = 120;

/** The first difference of two requests, for people: where it is, and both sides from a little before it. */
export function firstDifference(recorded: readonly RequestPart[], asked: readonly RequestPart[]): string {
  const at = alikeParts(recorded, asked);
  const [was, is] = [recorded[at], asked[at]];
  if (was && is && was.name !== is.name) return `it has ${was.name}, this one ${is.name} in its place`;
  if (!is) return `this one ends before ${was?.name}: ${excerpt(was?.text ?? '', 0)}`;
  if (!was) return `this one goes on with ${is.name}: ${excerpt(is.text, 0)}`;
  let from = 0;
  while (from < was.text.length && was.text[from] === is.text[from]) from += 1;
  return `in ${is.name}: recorded ${excerpt(was.text, from)}, asked ${excerpt(is.text, from)}`;
}

function excerpt(text: string, from: number): string {
  const start = Math.max(0, from - BEFORE_CHARS);
  const end = start + SHOWN_CHARS;
  const cut = `${start > 0 ? '…' : ''}${text.slice(start, end)}${end < text.length ? '…' : ''}`;
  return JSON.stringify(cut.toWellFormed());
}
