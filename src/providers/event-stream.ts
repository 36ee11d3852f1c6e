import { createParser, type EventSourceMessage } from 'eventsource-parser';

/** Text that proxies send as data to keep a connection open. */
const KEEP_ALIVE = /^[\w .:-]{0,64}$/;
/** Matching text that reports a failure instead. */
const SAYS_FAILURE = /error|fail|denied|limit|invalid|timeout/i;
const DONE = '[DONE]';

/**
 * The JSON objects of a streamed answer, in every framing that servers use: events with or without names, empty data,
 * comments, a last event without an empty line after it; or no events but one JSON document, a list, or lines of JSON. An
 * object without a `type` gets the name of its event. An error that the server reports is thrown, with the `headers` of the
 * answer, and the report as `error`.
 */
export async function* readEventStream<E>({ body, headers }: Response): AsyncGenerator<E> {
  if (!body) return;
  const frames: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (frame) => void frames.push(frame) });
  let isJson: boolean | null = null;
  let json = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    isJson ??= beginsJson(piece);
    if (isJson) json += piece;
    else parser.feed(piece);
    for (const frame of frames.splice(0)) {
      if (frame.data.trim() === DONE) return;
      yield* objectsOf<E>(parsed(frame), frame.event, headers);
    }
  }
  if (isJson) {
    for (const value of documentsIn(json)) yield* objectsOf<E>(value, undefined, headers);
    return;
  }
  parser.feed('\n\n');
  for (const frame of frames) {
    // A truncated event is dropped: its answer is incomplete anyway.
    if (frame.data.trim() !== DONE && isWhole(frame.data))
      yield* objectsOf<E>(parsed(frame), frame.event, headers);
  }
}

/** Null while only white space has arrived. No line of an event stream begins like JSON. */
function beginsJson(piece: string): boolean | null {
  const first = piece.trimStart()[0];
  return first === undefined ? null : first === '{' || first === '[';
}

function parsed({ event, data }: EventSourceMessage): unknown {
  const text = data.trim();
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch (cause) {
    if (event === 'error') return { error: text };
    if (KEEP_ALIVE.test(text) && !SAYS_FAILURE.test(text)) return null;
    throw new Error(`an event of the answer is not JSON: ${text.slice(0, 200)}`, { cause });
  }
}

function isWhole(data: string): boolean {
  try {
    JSON.parse(data);
    return true;
  } catch {
    return false;
  }
}

/** One document, perhaps followed by events, or one document on each line. */
function documentsIn(text: string): unknown[] {
  const [document = ''] = text.split(/^data:/m, 1);
  try {
    return [JSON.parse(document)];
  } catch {
    const lines = text.split(/[\r\n]+/).map((line) => line.replace(/^data:/, '').trim());
    // The last line may be truncated.
    return lines.filter((line) => line !== DONE && isWhole(line)).map((line): unknown => JSON.parse(line));
  }
}

function* objectsOf<E>(value: unknown, event: string | undefined, headers: Headers): Generator<E> {
  for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) {
    if (typeof each !== 'object' || each === null || Array.isArray(each)) continue;
    if (event === 'error' || saysError(each)) throw reportedFailure(JSON.stringify(each), each, { headers });
    yield (event === undefined || 'type' in each ? each : { ...each, type: event }) as E;
  }
}

/** OpenAI's Responses report a failure in an event of the type `error`, with the message beside the type. */
function saysError(value: object): boolean {
  const { error, object, errors } = value as { error?: unknown; object?: unknown; errors?: unknown };
  return Boolean(error) || object === 'error' || (Array.isArray(errors) && errors.length > 0);
}

/** The failure that an answer reports, in the form that `vendorErrorOf` reads. `text`: the body as it arrived. */
function reportedFailure(text: string, body: unknown, facts: { status?: number; headers: Headers }): Error {
  return Object.assign(new Error(text.trim() || 'the answer has no body'), facts, { error: body });
}
