import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import { ulid } from 'ulid';
import type { Answer } from '../asking/answer.ts';
import type { ChatChange } from '../asking/chat-change.ts';
import type { Said } from '../doors/openai/said.ts';
import { createSpeech } from '../doors/speech.ts';
import type { Clock } from '../clock.ts';
import { toTroupeError } from '../errors.ts';
import type { Caller } from './access/caller.ts';
import { beginExchange, wholeAnswer } from './exchange.ts';
import { type HeldPlace, openStream, withHeartbeats, withPlace } from './open-stream.ts';
import type { RouteServer } from './route.ts';

/** The model that stands for whoever the conversation's routing names. */
export const ROUTED = 'troupe';
const CONVERSATION_HEADER = 'x-troupe-conversation';

interface Request {
  context: Context;
  caller: Caller;
  model: string;
  /** Null: a new one. */
  conversation: string | null;
  isStreamed: boolean;
  said: Said;
}

/** Where an answer is, for its ids. */
export interface AnswerPlace {
  conversation: string;
  seq: number;
  /** Seconds since the epoch. */
  created: number;
}

/** How one of the APIs writes an answer. */
export interface AnswerWriter {
  whole: (text: string, answer: Answer) => object;
  /** Each object is one event of the stream. */
  begin: () => object[];
  words: (text: string) => object;
  end: (text: string, answer: Answer) => object[];
  fail: (text: string, error: ApiError) => object;
  /** The text of an event of the stream. */
  frame: (event: object) => string;
  /** Ends every stream. */
  last: string;
}

export interface ApiError {
  code: string;
  message: string;
  type: 'troupe_error';
}

/** Says what the client says, and answers in the words of its API. */
export function answerAs(
  request: Request,
  writerOf: (place: AnswerPlace) => AnswerWriter,
  server: RouteServer,
): Promise<Response> {
  const { clock, signal } = server;
  return withPlace({ caller: request.caller, clock, signal }, (held) =>
    answerHeld(request, writerOf, { clock, held }),
  );
}

async function answerHeld(
  request: Request,
  writerOf: (place: AnswerPlace) => AnswerWriter,
  { clock, held }: { clock: Clock; held: HeldPlace },
): Promise<Response> {
  const { context, caller, model, said } = request;
  const key = keyOf(context);
  const conversation = request.conversation ?? `openai-${key ?? ulid(clock.now()).toLowerCase()}`;
  const exchange = await beginExchange(caller, {
    conversation,
    channel: 'openai',
    ...said,
    ...(key !== null && { id: `openai-${key}` }),
    ...(model !== ROUTED && { to: [model] }),
  });
  const { seq, at } = exchange;
  const writer = writerOf({ conversation, seq, created: Math.floor(at / 1_000) });
  const { agents } = caller.troupe;
  const textOf = createSpeech(conversation, (agent) => agents.find(({ id }) => id === agent)?.name ?? agent);
  const headers = { [CONVERSATION_HEADER]: conversation };
  if (!request.isStreamed) {
    let text = '';
    const see = (change: ChatChange) => void (text += textOf(change));
    const answer = await wholeAnswer(context, exchange, { ends: held.ends, see });
    held.end();
    const error = failureOf(answer);
    return error
      ? context.json({ error }, 502, headers)
      : context.json(writer.whole(text, answer), 200, headers);
  }
  const write = (ends: AbortSignal) =>
    withHeartbeats(frames(exchange.changes(ends), { writer, textOf, ends }), { clock, ends });
  return openStream(context, write, { caller, clock, headers, place: held });
}

/** A repeated request, such as the retry of an SDK, is the same message in the same conversation. Null: it has no key. */
function keyOf({ req }: Context): string | null {
  const given = req.header('idempotency-key');
  return given ? createHash('sha256').update(given).digest('hex').slice(0, 32) : null;
}

async function* frames(
  changes: AsyncGenerator<ChatChange, Answer>,
  {
    writer,
    textOf,
    ends,
  }: { writer: AnswerWriter; textOf: (change: ChatChange) => string; ends: AbortSignal },
): AsyncGenerator<string, void> {
  const { frame } = writer;
  let text = '';
  try {
    for (const each of writer.begin()) yield frame(each);
    let next = await changes.next();
    for (; !next.done; next = await changes.next()) {
      const words = textOf(next.value);
      text += words;
      if (words !== '') yield frame(writer.words(words));
    }
    const failure = failureOf(next.value);
    if (failure) yield frame(writer.fail(text, failure));
    else for (const each of writer.end(text, next.value)) yield frame(each);
  } catch (error) {
    if (ends.aborted) return;
    const { code, message } = toTroupeError(error);
    yield frame(writer.fail(text, { code, message, type: 'troupe_error' }));
  } finally {
    await changes.return(undefined as never);
  }
  yield writer.last;
}

/** Nobody has answered, and somebody failed. */
function failureOf({ outcome, replies, failures }: Answer): ApiError | null {
  const [failure] = failures;
  if (outcome !== 'failed' || replies.length > 0 || !failure) return null;
  const { agent, code, message } = failure;
  return { code, message: `@${agent}: ${message}`, type: 'troupe_error' };
}
