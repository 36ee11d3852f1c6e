import type { Context } from 'hono';
import { type Caller, type DoorServer, changesSince, filesIn, holdPlace } from '../http.ts';
import { type Answer, type EventOf, TroupeError } from '../troupe.ts';
import { failureOf } from './outcome.ts';
import { answerNamed, responseId } from './response-request.ts';
import { type ResponseHead, responseOf, responseWith, responseWriter, wordsSaid } from './response.ts';
import { invalid } from './said.ts';
import { answerWords, ROUTED, streamAnswer } from './answer.ts';

interface Wanted {
  caller: Caller;
  /** Of the answer. */
  id: string;
  /** The conversation that the path names. */
  within?: string;
}

/** Time for which an answer may be told again, ms. Longer: it is under way. */
const TELL_MS = 1_000;

/** An answer of the Responses API, from the log. Throws `conversation_unknown` and, for a part of a stream, `event_invalid`. */
export async function toldResponse(
  { context, isStreamed, ...wanted }: Wanted & { context: Context; isStreamed: boolean },
  { clock, signal }: DoorServer,
): Promise<Response | { id: string; object: string }> {
  const { caller } = wanted;
  // Words are told again in other pieces, with other numbers.
  if (context.req.query('starting_after') !== undefined)
    throw invalid('starting_after', 'an answer is told from its beginning: leave it out');
  const head = headOf(await askedBy(wanted));
  const { conversation, format } = head;
  const words = answerWords(caller.troupe, conversation, format);
  const changesUntil = (ends: AbortSignal) => changesSince(caller.troupe, head, ends);
  const place = holdPlace({ caller, clock, signal });
  if (isStreamed) {
    const writer = responseWriter(head);
    return streamAnswer(context, { changes: changesUntil }, { writer, words, format, caller, clock, place });
  }
  const late = new AbortController();
  void clock.sleep(TELL_MS, late.signal).then(() => late.abort());
  try {
    const ends = AbortSignal.any([place.ends, context.req.raw.signal, late.signal]);
    const changes = changesUntil(ends);
    let next = await changes.next();
    for (; !next.done; next = await changes.next()) words.see(next.value);
    return given(head, next.value, words);
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'aborted') throw error;
    return asAnswer(responseOf(head, [], { status: 'in_progress' }));
  } finally {
    late.abort();
    place.end();
  }
}

function headOf(event: EventOf<'message'>): ResponseHead & { seq: number } {
  const { conversation, seq, to, at, context: { reply = null } = {} } = event;
  return {
    id: responseId({ conversation, seq, isStored: true }),
    created: Math.floor(at / 1_000),
    model: to.length === 1 && to[0] !== undefined ? to[0] : ROUTED,
    conversation,
    seq,
    isStored: true,
    metadata: {},
    format: reply,
  };
}

function given(
  head: ResponseHead,
  answer: Answer,
  words: ReturnType<typeof answerWords>,
): { id: string; object: string } {
  const error = failureOf(answer, head.format);
  return asAnswer(
    error
      ? responseOf(head, wordsSaid(words.said), { status: 'failed', error })
      : responseWith(head, words.parts(answer), answer),
  );
}

function asAnswer(response: object): { id: string; object: string } {
  return response as { id: string; object: string };
}

/** The message that an answer is about, as items of a request. Throws `conversation_unknown`. */
export async function inputItems(wanted: Wanted) {
  const event = await askedBy(wanted);
  const files = await filesIn(wanted.caller.troupe)(event);
  const { content } = event.body;
  const id = `msg_in_${wanted.id}`;
  const parts = files.map(({ mediaType, name, base64 }) => {
    const url = base64 === null ? null : `data:${mediaType};base64,${base64}`;
    return mediaType.startsWith('image/')
      ? { type: 'input_image', detail: 'auto', image_url: url }
      : { type: 'input_file', ...(name !== undefined && { filename: name }), file_data: url };
  });
  const said = content === '' ? [] : [{ type: 'input_text', text: content }];
  const item = { id, type: 'message', role: 'user', status: 'completed', content: [...said, ...parts] };
  return { object: 'list' as const, data: [item], first_id: id, last_id: id, has_more: false as const };
}

/** The message that an answer with this id is about. */
async function askedBy({ caller, id, within }: Wanted): Promise<EventOf<'message'>> {
  const named = answerNamed(id);
  const isHere = named?.isStored === true && (within === undefined || named.conversation === within);
  const event = isHere ? await messageAt(caller, named.conversation, named.seq) : null;
  if (event?.kind === 'message' && event.author.kind !== 'agent') return event;
  const why = named?.isStored === false ? ': it was asked for with store: false' : '';
  throw new TroupeError('conversation_unknown', `there is no response "${id}"${why}`, { response: id });
}

async function messageAt({ troupe }: Caller, conversation: string, seq: number) {
  if (seq < 1) return null;
  const { events } = await troupe.events(conversation, { after: seq - 1, limit: 1 });
  return events.find((event) => event.seq === seq) ?? null;
}
