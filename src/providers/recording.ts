import { appendFileSync, closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import * as z from 'zod';
import { ERROR_CODES, TroupeError } from '../base/errors.ts';
import { PromptMessage, Reasoning, ToolCall, ToolSpec, Usage } from '../events/index.ts';
import { makePrivateFile } from '../base/private-files.ts';
import type { ModelEvent, ModelRequest, Provider } from './provider.ts';
import type { Clock } from '../base/clock.ts';
import { type Redact, redactAll } from './redact.ts';

/** Destination of recorded calls. */
interface RecordSink {
  write: (call: RecordedCall) => void;
  redact: Redact;
  clock: Clock;
  /** Reports a call that could not be written; the call itself goes on. */
  onWarning: (error: unknown, where: string) => void;
}

/**
 * The same provider, with every call recorded and redacted before its last event is passed on: whatever the engine
 * acted on is in the recording. A call whose reader left is recorded as aborted.
 */
export function record(provider: Provider, sink: RecordSink): Provider {
  const { name, capabilities, home, cwdOf, server, toolProblem } = provider;
  // Lists every member, optional ones too, so that a member added to the port is not lost here.
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
      // The hashes in the messages are enough to find a request again.
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
      // What pieces say is in the whole. A key may be split over several of them.
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

/** A key may be split over several deltas; then the text is recorded as one. */
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
 * A recording is JSON lines: a header, then one line for every finished model call, in order of their ends. A process
 * that continues a file writes another header. One file belongs to one process at a time.
 */
const VERSION = 1;

/** The parts of a provider that a replay needs in order to stand in for it. */
export type RecordedProvider = Pick<Provider, 'name' | 'capabilities' | 'home'>;

const Capabilities = z.looseObject({}) as unknown as z.ZodType<Provider['capabilities']>;
const Header = z.object({
  recording: z.int(),
  /** ISO date, for people. */
  at: z.string(),
  /** By agent. */
  agents: z.record(
    z.string(),
    z.object({ name: z.string(), capabilities: Capabilities, home: z.string().exactOptional() }),
  ),
});
export type RecordingHeader = z.infer<typeof Header>;

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
  /** Duration; a replay does not wait. */
  ms: z.number(),
});
export type RecordedCall = z.infer<typeof Call>;

/** Starts a recording or continues one. Returns the function that appends a call. Throws `config_invalid`. */
export function openRecording(
  path: string,
  header: Omit<RecordingHeader, 'recording'>,
): (call: RecordedCall) => void {
  // One write per line: a second process that appends by mistake cannot tear it.
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

/** True if the last line is incomplete. Throws for a file that is not a recording: it must not be written to. */
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
    // A process that is killed leaves a torn line; the next one begins with a header.
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
    return undefined; // Not JSON: the caller knows whether that is allowed here.
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
