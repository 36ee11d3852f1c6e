import { createParser, type EventSourceMessage } from 'eventsource-parser';

/** Words with which proxies keep a connection open, sent as data. */
const KEEP_ALIVE = /^[\w .:-]{0,64}$/;
/** Such words that are none of these. */
const SAYS_FAILURE = /error|fail|denied|limit|invalid|timeout/i;
const DONE = '[DONE]';

/**
 * The JSON objects of a streamed answer, as servers frame them: events with or without names, a last event without the empty
 * line behind it, empty data, comments; or no events at all but one JSON document, a list or lines of JSON. A reported
 * error is thrown, with the `headers` of the answer and the report as `error`. `type` of an object that has none is the
 * name of its event.
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
    // An event that was cut off is no event: its answer is incomplete.
    if (frame.data.trim() !== DONE && isWhole(frame.data))
      yield* objectsOf<E>(parsed(frame), frame.event, headers);
  }
}

/** Null: nothing but white space has come yet. No line of an event stream begins like this. */
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

/** One document, perhaps with events behind it, or a document on each line. */
function documentsIn(text: string): unknown[] {
  const [document = ''] = text.split(/^data:/m, 1);
  try {
    return [JSON.parse(document)];
  } catch {
    const lines = text.split(/[\r\n]+/).map((line) => line.replace(/^data:/, '').trim());
    // The last line may be cut off.
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

/** OpenAI's Responses report a failure in an event of the type `error`, which has its words beside it. */
function saysError(value: object): boolean {
  const { error, object, errors } = value as { error?: unknown; object?: unknown; errors?: unknown };
  return Boolean(error) || object === 'error' || (Array.isArray(errors) && errors.length > 0);
}

/** The failure that an answer reports, in the form that `vendorErrorOf` reads. `text`: its body as it came. */
function reportedFailure(text: string, body: unknown, facts: { status?: number; headers: Headers }): Error {
  return Object.assign(new Error(text.trim() || 'the answer has no body'), facts, { error: body });
}
