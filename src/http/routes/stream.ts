import type { Context } from 'hono';
import * as z from 'zod';
import { isGranted } from '../../access/index.ts';
import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import { ConversationId, type Event } from '../../events/index.ts';
import { unknownConversation } from '../access/limit-troupe.ts';
import { eventJson, followAll, followConversation, type Frame } from '../../asking/follow.ts';
import { rateLimited } from '../refusal.ts';
import { defineRoute } from '../route.ts';
import { parseInput, Seq } from '../schemas.ts';
import { textStream } from '../text-stream.ts';

const RECONNECT_MS = 1_000;
const STREAM_RETRY_MS = 5_000;
/** How often an open stream checks its caller. With the cache of keys, a revoked key's stream ends within 5 s. */
const CHECK_CALLER_MS = 2_500;
const OWNERS = { caller: 'one caller', tenant: 'one tenant', process: 'this process' };
const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
  // Ends with its stream, so that a closing server need not wait for the connection to time out.
  connection: 'close',
};

const StreamQuery = z.object({ conversation: ConversationId.optional(), after: Seq.optional() });

/**
 * Server-sent events: `event` frames, which can be resumed; `stream` frames with a reply as it is written, `activity`
 * frames with tool calls and reasoning, and `state` frames with transitions of the agents' machines, which cannot.
 */
export const streamRoute = defineRoute({
  method: 'GET',
  path: '/api/events',
  scopes: ['read'],
  id: 'streamEvents',
  summary:
    'Server-sent events of one conversation, resumable by Last-Event-ID, or live events of all. `event`: a stored event; `stream`: part of a reply as it is written; `activity`: what else happens in a running turn (reasoning, arguments of calls as they are written, the start, progress and result of calls, and what is void again), by `kind`; `state`: a transition of an agent; `gap`: events of the stream over all conversations were dropped',
  query: StreamQuery,
  answerType: 'text/event-stream',
  handle({ context, caller, query }, { clock, signal }) {
    const lastId = context.req.header('last-event-id');
    const { conversation } = query;
    const { after } = lastId ? parseInput(StreamQuery, { after: lastId }, 'the query') : query;
    if (conversation === undefined && after !== undefined) throw notResumable();
    const { principal, troupe, traffic, isStillGood, reading } = caller;
    // A conversation that does not exist yet may be followed, one that was not granted may not.
    if (conversation !== undefined && !isGranted(principal, conversation))
      throw unknownConversation(conversation);
    // The body of a HEAD request is never read, so its stream would never end.
    if (context.req.method === 'HEAD') return context.body(null, 200, HEADERS);
    const place = traffic.openStream(principal);
    if ('full' in place) {
      const message = `at most ${place.limit} open streams of ${OWNERS[place.full]}`;
      throw rateLimited(message, place.limit, STREAM_RETRY_MS);
    }
    const gone = new AbortController();
    if (isStillGood) void abortWhenUnknown(isStillGood, clock, gone);
    const close = () => {
      gone.abort();
      place.end();
    };
    const ends = signal ? AbortSignal.any([signal, gone.signal]) : gone.signal;
    // A client that does not read would otherwise occupy its slot forever.
    ends.addEventListener('abort', close, { once: true });
    const options = { troupe, clock, signal: ends };
    const live =
      conversation === undefined ? followAll(options) : followConversation(conversation, after ?? 0, options);
    const frames = reading ? reading.paced(live, ends) : live;
    const text = asText(frames, (event) => (conversation === undefined ? '' : `id: ${event.seq}\n`));
    const body = textStream(finallyDo(text, close), {
      onCancel: close,
      ends,
      onUnread: () => destroyConnection(context),
    });
    return context.body(body, 200, HEADERS);
  },
});

function notResumable(): TroupeError {
  const message = 'only the stream of one conversation can be resumed: name it with ?conversation=';
  return new TroupeError('event_invalid', message, { path: 'conversation' });
}

/** Aborts `open` when the caller's credential is no longer valid or its rights changed. Ends when `open` is aborted. */
async function abortWhenUnknown(
  isStillGood: () => Promise<boolean>,
  clock: Pick<Clock, 'sleep'>,
  open: AbortController,
): Promise<void> {
  const { signal } = open;
  for (;;) {
    await clock.sleep(CHECK_CALLER_MS, signal);
    if (signal.aborted) return;
    // After a failed lookup the next round tries again.
    if (!(await isStillGood().catch(() => true))) return open.abort();
  }
}

/** Without this the connection stays open until its client has read everything. */
function destroyConnection({ env }: Context): void {
  const { outgoing } = Object(env) as { outgoing?: { destroy?: () => void } };
  outgoing?.destroy?.();
}

/** Runs `close` at the end of the source. `onCancel` handles a reader that leaves before the source starts. */
async function* finallyDo(
  source: AsyncGenerator<string, void>,
  close: () => void,
): AsyncGenerator<string, void> {
  try {
    yield* source;
  } finally {
    close();
  }
}

async function* asText(
  frames: AsyncGenerator<Frame, void>,
  idOf: (event: Event) => string,
): AsyncGenerator<string, void> {
  yield `retry: ${RECONNECT_MS}\n\n`;
  for await (const frame of frames) yield frameText(frame, idOf);
}

function frameText(frame: Frame, idOf: (event: Event) => string): string {
  switch (frame.type) {
    case 'event':
      return `event: event\n${idOf(frame.event)}data: ${eventJson(frame.event)}\n\n`;
    case 'delta': {
      const { address, ...delta } = frame.delta;
      const { conversation, agent } = address;
      return `event: stream\ndata: ${JSON.stringify({ conversation, agent, ...delta })}\n\n`;
    }
    case 'activity': {
      const { address, ...activity } = frame.activity;
      const { conversation, agent } = address;
      return `event: activity\ndata: ${JSON.stringify({ conversation, agent, ...activity })}\n\n`;
    }
    case 'state': {
      const { address, ...state } = frame.state;
      const { conversation, agent } = address;
      return `event: state\ndata: ${JSON.stringify({ conversation, agent, ...state })}\n\n`;
    }
    case 'gap':
      return 'event: gap\ndata: {}\n\n';
    case 'heartbeat':
      return ': still here\n\n';
  }
}
