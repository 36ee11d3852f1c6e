import type { Context } from 'hono';
import { ulid } from 'ulid';
import {
  type Caller,
  ConversationPath,
  type Exchange,
  type HeldPlace,
  type DoorServer,
  beginExchange,
  callersKey,
  newConversation,
  openStream,
  parseInput,
  wholeAnswer,
  withHeartbeats,
  withPlace,
} from '../http.ts';
import {
  type Answer,
  type AskedReply,
  type ChatChange,
  type Clock,
  type ConversationId,
  type Principal,
  type Troupe,
  TroupeError,
  covers,
  isGranted,
  storedEvents,
  toTroupeError,
  ERROR_CODES,
  parseExact,
  policyOf,
} from '../troupe.ts';
import { begin, type Heard, invalid, quoted, type Said } from './requests.ts';
import { createSpeech, namesIn } from '../speech.ts';

/** The model name that lets the conversation's routing decide who answers. */
export const ROUTED = 'troupe';
const CONVERSATION_HEADER = 'x-troupe-conversation';

interface Request {
  context: Context;
  caller: Caller;
  model: string;
  /** Null: a new one, or the conversation of the last answer in the history. */
  conversation: string | null;
  isStreamed: boolean;
  heard: Heard;
  format: AskedReply | null;
}

/** A request to either API, below `/api/v1` or below the base URL of a conversation. */
export interface ApiRequest<B> {
  context: Context;
  caller: Caller;
  params: { conversation?: string };
  body: () => Promise<B>;
}

/** The conversation that the path names. Null if it names none. Throws `event_invalid`. */
export function conversationIn({ params }: Pick<ApiRequest<unknown>, 'params'>): string | null {
  if (params.conversation === undefined) return null;
  return parseInput(ConversationPath, params, 'the path').conversation;
}

/** The place of an answer, from which its ids are made. */
export interface AnswerPlace {
  conversation: string;
  seq: number;
  /** Seconds since the epoch. */
  created: number;
}

/** How one of the APIs writes an answer. */
export interface AnswerWriter {
  whole: (parts: readonly AnswerPart[], answer: Answer) => object;
  /** The first events of the stream. */
  begin: () => object[];
  /** Called only if the client has not asked for a form of the answer. */
  words: (text: string) => object;
  end: (parts: readonly AnswerPart[], answer: Answer) => object[];
  fail: (text: string, error: ApiError) => object;
  /** Text of an event of the stream. */
  frame: (event: object) => string;
  /** Text at the end of every stream. */
  last: string;
}

/** Stores the client's message, and answers in the form of its API. */
export function answerAs(
  request: Request,
  writerOf: (place: AnswerPlace) => AnswerWriter,
  server: DoorServer,
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
  const { context, caller, format } = request;
  const { conversation, exchange } = await say(request, clock);
  const { seq, at } = exchange;
  const writer = writerOf({ conversation, seq, created: Math.floor(at / 1_000) });
  const words = answerWords(caller.troupe, conversation, format);
  const headers = { [CONVERSATION_HEADER]: conversation };
  if (!request.isStreamed) {
    const answer = await wholeAnswer(context, exchange, {
      ends: held.ends,
      see: (change) => words.see(change),
    });
    held.end();
    const failure = failureOf(answer, format);
    return failure
      ? refused(context, failure, headers)
      : context.json(writer.whole(words.parts(answer), answer), 200, headers);
  }
  return streamAnswer(context, exchange, { writer, words, format, caller, clock, headers, place: held });
}

interface StreamParts extends Omit<FramesParts, 'ends'> {
  caller: Caller;
  clock: Clock;
  place: HeldPlace;
  headers?: Record<string, string>;
}

/** The answer as events, from its beginning. */
export function streamAnswer(
  context: Context,
  { changes }: Pick<Exchange, 'changes'>,
  { caller, clock, place, headers, ...parts }: StreamParts,
): Response {
  const write = (ends: AbortSignal) =>
    withHeartbeats(frames(changes(ends), { ...parts, ends }), { clock, ends });
  return openStream(context, write, { caller, clock, place, ...(headers && { headers }) });
}

/**
 * The client must not retry: the agents have already retried, and their tools may have had effects. OpenAI's SDKs respect the
 * header; other clients retry any status of 500 or more.
 */
function refused(
  context: Context,
  { isPermanent, ...error }: ApiError & { isPermanent: boolean },
  headers: Record<string, string>,
): Response {
  return context.json({ error }, isPermanent ? 422 : 502, { ...headers, 'x-should-retry': 'false' });
}

/** Stores the client's message in its conversation. */
async function say(request: Request, clock: Clock): Promise<{ conversation: string; exchange: Exchange }> {
  const { context, caller, model, heard, format } = request;
  const { troupe, principal } = caller;
  const key = keyOf(context, principal);
  const known = request.conversation ?? (await goneOnIn(caller, heard));
  const conversation =
    known ?? newConversation(principal, `openai-${key ?? ulid(clock.now()).toLowerCase()}`);
  const saying = {
    conversation,
    channel: 'openai',
    ...(key !== null && { id: `openai-${key}` }),
    ...(model !== ROUTED && { to: [model] }),
    // If it steered another turn, the answer would have that turn's form.
    ...(format && { reply: format, whileBusy: 'queue' as const }),
  };
  const goOn = () => beginExchange(caller, { ...saying, ...heard.fresh });
  const mayBegin = heard.history.length > 0 || heard.rules !== '';
  if (!mayBegin) return { conversation, exchange: await goOn() };
  async function beginThere(): Promise<Exchange> {
    const { first, before } = beginningOf(caller, { conversation, model, heard });
    return beginExchange(caller, { ...saying, ...first }, before);
  }
  if (known === null || (await isEmpty(troupe, conversation)))
    return { conversation, exchange: await beginThere() };
  // The first attempt of a repeated request began the conversation, and so stored more than this message.
  const repeated = (error: unknown) => {
    if (key !== null && error instanceof TroupeError && error.code === 'event_conflict') return beginThere();
    throw error;
  };
  return { conversation, exchange: await goOn().catch(repeated) };
}

/**
 * The conversation to which the last answer of the history belongs, if nobody has spoken there since. Null if there is none.
 * Throws `event_invalid` if the history refers to answers by id alone, and not only to that last answer.
 */
async function goneOnIn({ troupe, principal }: Caller, { history }: Heard): Promise<string | null> {
  const last = history.at(-1);
  const answer = last?.role === 'assistant' ? last.answer : undefined;
  if (answer && isGranted(principal, answer.conversation) && (await isNewest(troupe, answer)))
    return answer.conversation;
  if (!history.some((told) => told.role === 'assistant' && told.isReference)) return null;
  throw invalid(
    'input',
    'an item_reference names an answer that is not the newest of a conversation here: send the items of the history whole, or name previous_response_id',
  );
}

async function isNewest(
  troupe: Troupe,
  { conversation, seq }: { conversation: string; seq: number },
): Promise<boolean> {
  let isThere = false;
  for await (const event of storedEvents(troupe, conversation as ConversationId, Math.max(0, seq - 1))) {
    if (event.kind !== 'message' || event.author.kind !== 'user') continue;
    if (event.seq !== seq) return false;
    isThere = true;
  }
  return isThere;
}

async function isEmpty(troupe: Troupe, conversation: string): Promise<boolean> {
  try {
    return (await troupe.events(conversation, { after: 0, limit: 1 })).events.length === 0;
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return true;
    throw error;
  }
}

/** The first message of a conversation, and the messages to store before it. */
function beginningOf(
  { troupe, principal }: Caller,
  { conversation, model, heard }: { conversation: string; model: string; heard: Heard },
): { first: Said; before?: () => Promise<unknown> } {
  const { agents } = troupe;
  const begun = begin(heard);
  const { transcript, first } = begun;
  if (transcript.length === 0) return { first };
  const [only] = agents;
  const asked = agents.find(({ id }) => id === model) ?? (agents.length === 1 ? only : undefined);
  // A caller who may not write as an agent quotes the agents in its own message.
  const mayImport =
    principal.author === null &&
    principal.scopes.includes('operate') &&
    covers(principal, `${conversation}*`);
  if (!mayImport || (!asked && model !== ROUTED)) return { first: quoted(begun) };
  const request = { conversation, format: 'openai', ...(asked && { agent: asked.id }) };
  const text = JSON.stringify({ messages: transcript });
  return { first, before: () => troupe.import(oneOf(text), request) };
}

async function* oneOf(text: string): AsyncGenerator<string> {
  yield text;
}

/** A repeated request, such as an SDK's retry, is the same message in the same conversation. Null if it has no key. */
function keyOf({ req }: Context, principal: Principal): string | null {
  const given = req.header('idempotency-key');
  return given ? callersKey(principal, given) : null;
}

/** The text of an answer: piece by piece, unless the client has asked for a form, in which case its parts come at the end. */
export function answerWords(troupe: Pick<Troupe, 'agents'>, conversation: string, format: AskedReply | null) {
  const textOf = createSpeech(conversation, namesIn(troupe));
  let said = '';
  return {
    see(change: ChatChange): string {
      const words = textOf(change);
      said += words;
      return format ? '' : words;
    },
    get said() {
      return said;
    },
    parts: (answer: Answer) => partsOf(answer, said, format),
  };
}

interface FramesParts {
  writer: AnswerWriter;
  words: ReturnType<typeof answerWords>;
  format: AskedReply | null;
  ends: AbortSignal;
}

async function* frames(
  changes: AsyncGenerator<ChatChange, Answer>,
  { writer, words, format, ends }: FramesParts,
): AsyncGenerator<string, void> {
  const { frame } = writer;
  try {
    for (const each of writer.begin()) yield frame(each);
    let next = await changes.next();
    for (; !next.done; next = await changes.next()) {
      const news = words.see(next.value);
      if (news !== '') yield frame(writer.words(news));
    }
    const answer = next.value;
    const failure = failureOf(answer, format);
    if (failure) {
      const { isPermanent: _, ...error } = failure;
      yield frame(writer.fail(words.said, error));
    } else {
      for (const each of writer.end(words.parts(answer), answer)) yield frame(each);
    }
  } catch (error) {
    if (ends.aborted) return;
    const { code, message } = toTroupeError(error);
    yield frame(writer.fail(words.said, { code, message, type: 'troupe_error' }));
  } finally {
    await changes.return(undefined as never);
  }
  yield writer.last;
}

export interface ApiError {
  code: string;
  message: string;
  type: 'troupe_error';
}

/** `isPermanent`: the same request would fail again. */
type Failed = ApiError & { isPermanent: boolean };

/** A failure if nobody has answered and somebody failed, or if the answer has not the form that the client asked for. */
export function failureOf(answer: Answer, format: AskedReply | null): Failed | null {
  const { outcome, replies, failures, waits } = answer;
  const [failure] = failures;
  if (outcome === 'failed' && replies.length === 0 && failure) {
    const { agent, code, message } = failure;
    const known = ERROR_CODES.find((each) => each === code);
    // A model that was already asked repeatedly will not produce the form for another request either.
    const isPermanent =
      known === undefined || known === 'provider_invalid_reply' || policyOf(known) !== 'retry';
    return { ...failed(code, `@${agent}: ${message}`), isPermanent };
  }
  if (!format || format.calls === 'optional' || answer.data !== undefined) return null;
  const [wait] = waits;
  const why = wait
    ? `@${wait.task.owner} waits for people first (${wait.task.id})`
    : `@${replies.at(-1)?.author.id ?? 'nobody'} has answered in words: only the agent that is asked answers in this form`;
  return {
    ...failed('provider_invalid_reply', `the answer has not the form that was asked for: ${why}`),
    isPermanent: true,
  };
}

function failed(code: string, message: string): ApiError {
  return { code, message, type: 'troupe_error' };
}

/** Whether the answer is incomplete because a model reached its output limit. */
export function isCut({ replies, events }: Answer): boolean {
  const turns = new Set(replies.map(({ turn }) => turn));
  return events.some(
    (event) =>
      event.kind === 'turn.done' &&
      event.body.cut !== undefined &&
      (turns.size === 0 || turns.has(event.turn)),
  );
}

/** A part of an answer for the client. `args`: JSON. */
export type AnswerPart = { kind: 'words'; text: string } | { kind: 'call'; name: string; args: string };

/** `said`: the whole text of the agents. If the client has asked for a form, only the last reply counts. */
function partsOf(answer: Answer, said: string, format: AskedReply | null): AnswerPart[] {
  if (!format) return [{ kind: 'words', text: said }];
  if (format.tool !== undefined) return [{ kind: 'call', name: format.tool, args: answer.text }];
  if (format.calls === undefined) return [{ kind: 'words', text: answer.text }];
  const { data } = answer as { data?: { say?: unknown; calls?: unknown } };
  if (typeof data !== 'object' || data === null || !Array.isArray(data.calls))
    return [{ kind: 'words', text: said }];
  const { say, calls } = parseExact(answer.text) as {
    say: string;
    calls: { name: string; arguments: unknown }[];
  };
  const words: AnswerPart[] = say === '' && calls.length > 0 ? [] : [{ kind: 'words', text: say }];
  return [
    ...words,
    ...calls.map(({ name, arguments: args }): AnswerPart => ({
      kind: 'call',
      name,
      args: JSON.stringify(args),
    })),
  ];
}

/** At most 40 characters, like OpenAI's ids. The end of the answer's id distinguishes the calls of different answers. */
export function callId(answer: string, index: number): string {
  return `call${index}_${answer.slice(-32)}`;
}
