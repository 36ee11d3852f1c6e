import * as z from 'zod';
import { appendFileSync, closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { ERROR_CODES, TroupeError } from '../base/errors.ts';
import { PromptMessage, Reasoning, ToolCall, ToolSpec, Usage, parseTurnId } from '../events/index.ts';
import { makePrivateFile } from '../base/private-files.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from './provider.ts';
import type { Clock } from '../base/clock.ts';
import { type Redact, redactAll } from './redact.ts';
import { createHash } from 'node:crypto';
import { once } from 'node:events';

interface RecordSink {
  write: (call: RecordedCall) => void;
  redact: Redact;
  clock: Clock;
  /** Reports a call that could not be written; the call itself continues. */
  onWarning: (error: unknown, where: string) => void;
}

/**
 * The same provider. Every call is redacted and recorded before its last event is passed on: the recording holds whatever the
 * engine acted on. A call whose reader stopped early is recorded as aborted.
 */
export function record(provider: Provider, sink: RecordSink): Provider {
  const { name, capabilities, home, cwdOf, server, toolProblem } = provider;
  // The type lists every member, so that a member added to the port is not forgotten here.
  const recorder: Required<Omit<Provider, Optional>> & Pick<Provider, Optional> = {
    name,
    capabilities,
    ...(home !== undefined && { home }),
    ...(cwdOf && { cwdOf }),
    ...(server && { server }),
    ...(toolProblem && { toolProblem }),
    stream: (request, options) => recorded(provider.stream(request, options), request, sink),
    leave: (cacheKey) => provider.leave?.(cacheKey),
    close: async () => provider.close?.(),
  };
  return recorder;
}

type Optional = 'home' | 'cwdOf' | 'server' | 'toolProblem';

async function* recorded(
  source: AsyncIterable<ModelEvent>,
  request: ModelRequest,
  { write, redact, clock, onWarning }: RecordSink,
): AsyncGenerator<ModelEvent> {
  const began = clock.monotonic();
  const events: ModelEvent[] = [];
  let ended = false;
  function end(): void {
    ended = true;
    try {
      const ms = Math.round(clock.monotonic() - began);
      // The image hashes in the messages suffice to find a request again.
      const { images: _, ...words } = request;
      write({
        request: redactAll(words, redact),
        events: redactAll(unbroken(events, redact), redact),
        ms,
      });
    } catch (error) {
      onWarning(error, 'recording');
    }
  }
  try {
    for await (const event of source) {
      // Pieces are not recorded: the whole repeats them, and a key may be split over several pieces.
      if (event.type !== 'thinking' && event.type !== 'calling') events.push(event);
      if (event.type === 'done' || event.type === 'failed' || event.type === 'aborted') end();
      yield event;
    }
  } finally {
    if (!ended) {
      events.push({ type: 'aborted' });
      end();
    }
  }
}

/** If a key is split over several deltas, the text is recorded as one delta. */
function unbroken(events: readonly ModelEvent[], redact: Redact): ModelEvent[] {
  const deltas = events.flatMap((event) => (event.type === 'text' ? [event.delta] : []));
  const whole = deltas.join('');
  if (redact(whole) === deltas.map(redact).join('')) return [...events];
  const first = events.findIndex(({ type }) => type === 'text');
  return events.flatMap((event, index): ModelEvent[] => {
    if (event.type !== 'text') return [event];
    return index === first ? [{ type: 'text', delta: whole }] : [];
  });
}

/**
 * A recording is JSON lines: a header, then one line for every finished model call, in the order in which they ended. A
 * process that continues a file writes another header. One file belongs to one process at a time.
 */
const VERSION = 1;

/** The parts of a provider that a replay needs to stand in for it. */
type RecordedProvider = Pick<Provider, 'name' | 'capabilities' | 'home'>;

const Capabilities = z.looseObject({}) as unknown as z.ZodType<Provider['capabilities']>;
const Header = z.object({
  recording: z.int(),
  /** ISO date, for people. */
  at: z.string(),
  /** By agent id. */
  agents: z.record(
    z.string(),
    z.object({ name: z.string(), capabilities: Capabilities, home: z.string().exactOptional() }),
  ),
});
type RecordingHeader = z.infer<typeof Header>;

const Request = z.looseObject({
  model: z.string(),
  messages: z.array(PromptMessage),
  tools: z.array(ToolSpec),
  session: z.looseObject({ kind: z.string() }).optional(),
  replySchema: z.record(z.string(), z.unknown()).optional(),
  trace: z.looseObject({
    conversation: z.string(),
    agent: z.string(),
    turn: z.string(),
    step: z.int(),
    call: z.int(),
    purpose: z.string().optional(),
  }),
}) as unknown as z.ZodType<ModelRequest>;

const AnEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('start') }),
  z.object({
    type: z.literal('session'),
    change: z.enum(['started', 'warm', 'resumed', 'rewound']),
    id: z.string(),
  }),
  z.object({ type: z.literal('text'), delta: z.string() }),
  z.object({ type: z.literal('reasoning'), reasoning: Reasoning }),
  z.object({ type: z.literal('call'), call: ToolCall }),
  z.object({ type: z.literal('begun'), mark: z.string() }),
  z.object({ type: z.literal('compacted') }),
  z.object({
    type: z.literal('done'),
    stop: z.enum(['end', 'calls', 'length', 'refusal']),
    usage: Usage,
    doubt: z.string().exactOptional(),
    broken: z.string().exactOptional(),
    session: z.object({ id: z.string(), checkpoint: z.string() }).exactOptional(),
    response: z.object({ model: z.string().exactOptional(), id: z.string().exactOptional() }).exactOptional(),
  }),
  z.object({
    type: z.literal('failed'),
    error: z.object({
      code: z.enum(ERROR_CODES),
      message: z.string(),
      retryAfterMs: z.number().exactOptional(),
      isAway: z.boolean().exactOptional(),
    }),
  }),
  z.object({ type: z.literal('aborted') }),
]) as unknown as z.ZodType<ModelEvent>;

const Call = z.object({
  request: Request,
  events: z.array(AnEvent).min(1),
  /** Duration in ms; a replay does not wait. */
  ms: z.number(),
});
type RecordedCall = z.infer<typeof Call>;

/** Starts a recording or continues one. Returns the function that appends a call. Throws `config_invalid`. */
export function openRecording(
  path: string,
  header: Omit<RecordingHeader, 'recording'>,
): (call: RecordedCall) => void {
  // Each line is one write, so that a second process that appends by mistake cannot split it.
  const append = (line: object, before = '') =>
    appendFileSync(path, `${before}${JSON.stringify(line)}\n`, { mode: 0o600 });
  try {
    const before = isTorn(path) ? '\n' : '';
    makePrivateFile(path);
    append({ recording: VERSION, ...header }, before);
  } catch (cause) {
    throw unusable(path, cause instanceof Error ? cause.message : String(cause), cause);
  }
  return append;
}

/** Whether the last line is incomplete. Throws for a file that is not a recording, because it must not be written to. */
function isTorn(path: string): boolean {
  if (!existsSync(path)) return false;
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    if (size === 0) return false;
    const head = Buffer.alloc('{"recording":'.length);
    readSync(file, head, 0, head.length, 0);
    if (head.toString() !== '{"recording":') throw new Error('the file exists and is not a recording');
    const last = Buffer.alloc(1);
    readSync(file, last, 0, 1, size - 1);
    return last.toString() !== '\n';
  } finally {
    closeSync(file);
  }
}

/** Reads a recording. Throws `config_invalid` with the line number. */
export function readRecording(path: string): { headers: RecordingHeader[]; calls: RecordedCall[] } {
  const lines = linesOf(path);
  const headers: RecordingHeader[] = [];
  const calls: RecordedCall[] = [];
  for (const [index, line] of lines.entries()) {
    const value = parseJson(line);
    // A killed process leaves an incomplete line; the next process begins with a header.
    const isLastOfProcess = index === lines.length - 1 || lines[index + 1]?.startsWith('{"recording":');
    if (value === undefined && index > 0 && isLastOfProcess) continue;
    if (isHeader(value) && value.recording > VERSION)
      throw unusable(path, `its version is ${value.recording}, and this Troupe reads up to ${VERSION}`);
    const isFirst = headers.length === 0;
    const parsed = (isFirst || isHeader(value) ? Header : Call).safeParse(value);
    if (!parsed.success) {
      const why = isFirst ? 'it is not a recording' : `line ${index + 1}: ${problemOf(parsed.error)}`;
      throw unusable(path, why);
    }
    if ('recording' in parsed.data) headers.push(parsed.data);
    else calls.push(parsed.data);
  }
  if (headers.length === 0) throw unusable(path, 'it is empty');
  return { headers, calls };
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean);
  } catch (cause) {
    throw unusable(path, cause instanceof Error ? cause.message : String(cause), cause);
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // Not JSON: the caller decides whether that is allowed here.
  }
}

function isHeader(value: unknown): value is { recording: number } {
  return typeof value === 'object' && value !== null && 'recording' in value;
}

function problemOf(error: z.ZodError): string {
  const [issue] = error.issues;
  return `${issue?.path.map(String).join('.') || 'it'}: ${issue?.message}`;
}

function unusable(path: string, why: string, cause?: unknown): TroupeError {
  return new TroupeError(
    'config_invalid',
    `the recording ${path} cannot be used: ${why}`,
    { path },
    { cause },
  );
}

/** Answers from one or several recordings. Counts the uses of each answer, because a request may recur. */
interface Replay {
  /** The provider of an agent as it was recorded; one called `name` for an agent that was not recorded. */
  provider(agent: string, name: string): Provider;
}

interface Entry extends RecordedCall {
  parts: readonly RequestPart[];
  uses: number;
}

/**
 * Answers requests from recordings. A request matches by its agent and by everything the model is shown, never by similarity:
 * with an answer to another question, a test would pass that should fail. Among several recorded answers, the one from the
 * same place of a conversation comes first, then the order of the recording. An aborted answer is replayed up to the abort,
 * and then waits to be aborted.
 */
export function createReplay(
  recordings: readonly { headers: readonly RecordingHeader[]; calls: readonly RecordedCall[] }[],
  redact: Redact,
): Replay {
  const agents = new Map<string, RecordedProvider>(
    recordings.flatMap(({ headers }) => headers.flatMap((header) => Object.entries(header.agents))),
  );
  const byAgent = new Map<string, Entry[]>();
  const byKey = new Map<string, Entry[]>();
  for (const call of recordings.flatMap(({ calls }) => calls)) {
    const { agent } = call.request.trace;
    const entry = { ...call, parts: requestParts(redactAll(call.request, redact)), uses: 0 };
    put(byAgent, agent, entry);
    put(byKey, keyOf(agent, entry.parts), entry);
  }

  function find(asked: ModelRequest): Entry | string {
    const request = redactAll(asked, redact);
    const { agent } = request.trace;
    const parts = requestParts(request);
    const found = likeliest(byKey.get(keyOf(agent, parts)) ?? [], request);
    return found ?? unknown(byAgent.get(agent) ?? [], request, parts);
  }

  return {
    provider(agent, name) {
      const recorded = agents.get(agent) ?? { name, capabilities: STATELESS };
      return { ...recorded, stream: (request, { signal }) => answer(find(request), signal) };
    },
  };
}

async function* answer(found: Entry | string, signal: AbortSignal): AsyncGenerator<ModelEvent> {
  yield { type: 'start' };
  if (typeof found !== 'string') found.uses += 1;
  const events = typeof found === 'string' ? [refusal(found)] : found.events;
  for (const event of events.filter(({ type }) => type !== 'start')) {
    if (event.type === 'aborted' && !signal.aborted) await once(signal, 'abort');
    if (signal.aborted) {
      yield { type: 'aborted' };
      return;
    }
    yield event;
  }
}

function refusal(message: string): ModelEvent {
  return { type: 'failed', error: { code: 'provider_invalid_request', message } };
}

function keyOf(agent: string, parts: readonly RequestPart[]): string {
  return `${agent}/${requestKey(parts)}`;
}

function put(map: Map<string, Entry[]>, key: string, entry: Entry): void {
  const entries = map.get(key);
  if (entries) entries.push(entry);
  else map.set(key, [entry]);
}

/** Ranks equal requests: the same place first, then the same conversation, then complete answers, then the least used. */
function likeliest(entries: readonly Entry[], { trace }: ModelRequest): Entry | undefined {
  const place = placeOf(trace);
  const rank = ({ request, events, uses }: Entry): number[] => [
    Number(placeOf(request.trace) !== place),
    Number(request.trace.conversation !== trace.conversation),
    Number(events.at(-1)?.type === 'aborted'),
    uses,
  ];
  const compare = (a: readonly number[], b: readonly number[]) =>
    a.map((value, at) => value - (b[at] ?? 0)).find((difference) => difference !== 0) ?? 0;
  return entries.toSorted((a, b) => compare(rank(a), rank(b)))[0];
}

function unknown(entries: readonly Entry[], { trace }: ModelRequest, parts: readonly RequestPart[]): string {
  const asked = `the recording has no answer for this request of @${trace.agent} (${placeOf(trace)})`;
  let nearest: Entry | undefined;
  let most = -1;
  for (const entry of entries) {
    const here = placeOf(entry.request.trace) === placeOf(trace) ? 0.5 : 0;
    const alike = alikeParts(entry.parts, parts) + here;
    if (alike > most) [nearest, most] = [entry, alike];
  }
  if (!nearest) return `${asked}, nor for any other of this agent`;
  const place = placeOf(nearest.request.trace);
  return `${asked}. The nearest is that of ${place}; the first difference: ${firstDifference(nearest.parts, parts)}`;
}

/** One part of what a model is shown, with its name in reports of differences. */
interface RequestPart {
  name: string;
  text: string;
}

/**
 * Everything a model is shown, in order, without what differs between runs: keys of fences, times and turn ids that Troupe
 * writes, ids of calls. The text of people and tools is kept.
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
      text: steady(withoutMarks(message, messageText(message, callName))),
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
const MARK_KEY = /^(\[[^\]\n]{0,400} )?#\d{6}(\]?)$/gm;
const MINUTE = /\b\d{4}-\d\d-\d\dT\d\d:\d\dZ/g;
/** A time is written only where the minute has changed: after a speaker, alone at the end, or in a reminder. */
const TIME_OF_SPEAKER = /^\[([^\]\n]{0,400}? |)(?:(?:\d{4}-)?\d\d-\d\d )?\d\d:\d\d(?=\]| #key\])/gm;
const DAY_AT_END = /(?:^| )(?:(?:\d{4}-)?\d\d-\d\d)? ?$/;
const TIME_ALONE = /\n\n\[(?:(?:\d{4}-)?\d\d-\d\d )?\d\d:\d\d(?:(?: \([^()\n]*\))? #key)?\]$/;
/** A person's time may follow in brackets. */
const TIME_OF_REMINDER =
  /(\[reminder #key\]\n)time: (?:time|(?:(?:\d{4}-)?\d\d-\d\d )?\d\d:\d\d)(?: \([^()\n]*\))?\n/g;
/** A reminder from which everything was removed. */
const EMPTY_REMINDER = /(?<!\n)\n*\[reminder #key\]\n#key/g;
/** The date in a line of memories: `#12 Ana (2026-02-11): `. */
const DAY_OF_LINE = /^(#\d+ .*?\()\d{4}-\d\d-\d\d\): /gm;

/** Only user messages have real marks; in the text of their authors, marks are escaped. */
function withoutMarks({ role }: PromptMessage, text: string): string {
  if (role !== 'user') return text;
  return text
    .replace(MARK_KEY, (_, head: string = '', end: string) => `${head}#key${end}`)
    .replace(TIME_ALONE, '')
    .replace(TIME_OF_SPEAKER, (_, name: string) => `[${name.replace(DAY_AT_END, '')}`)
    .replace(/^\[->\] /gm, '-> ');
}

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

function requestKey(parts: readonly RequestPart[]): string {
  const hash = createHash('sha256');
  for (const { name, text } of parts) hash.update(`${name}\n${text.length}\n${text}\n`);
  return hash.digest('hex').slice(0, 32);
}

/** The place of a request in its conversation, without the conversation's name. */
function placeOf({ turn, step, call }: ModelRequest['trace']): string {
  return `turn ${parseTurnId(turn)?.number ?? turn}, step ${step}, call ${call}`;
}

/** Length of the common prefix of two requests, in parts. */
function alikeParts(a: readonly RequestPart[], b: readonly RequestPart[]): number {
  const index = a.findIndex(({ name, text }, at) => b[at]?.name !== name || b[at].text !== text);
  return index < 0 ? a.length : index;
}

const BEFORE_CHARS = 30;
const SHOWN_CHARS = 120;

/** The first difference of two requests, for people: where it is, and both sides from a little before it. */
function firstDifference(recorded: readonly RequestPart[], asked: readonly RequestPart[]): string {
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
