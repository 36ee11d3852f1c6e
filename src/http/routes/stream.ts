import type { Context, Hono } from 'hono';
import { isGranted } from '../../access/index.ts';
import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import { callerOf } from '../access/caller.ts';
import { unknownConversation } from '../access/limit-troupe.ts';
import { untilUnknown } from '../access/until-unknown.ts';
import { eventJson } from '../event-json.ts';
import { followAll, followConversation, type Frame } from '../follow.ts';
import { parseInput, StreamQuery } from '../schemas.ts';
import { rateLimited } from '../refusal.ts';
import { textStream } from '../text-stream.ts';

const RECONNECT_MS = 1_000;
const STREAM_RETRY_MS = 5_000;
const WHOSE = { caller: 'one caller', tenant: 'one tenant', process: 'this process' };
const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
  // Ends with its stream, so that a closing server need not wait for it to time out.
  connection: 'close',
};

/**
 * Server-sent events: `event` frames, which can be resumed; `stream` frames with a reply as it is written, and `state`
 * frames with what the machines of agents go through, which cannot.
 */
export function addStreamRoutes(
  app: Hono,
  { clock, signal }: { clock: Clock; signal: AbortSignal | undefined },
): void {
  app.get('/api/events', (context) => {
    const lastId = context.req.header('last-event-id');
    const query = lastId ? { after: lastId } : {};
    const { conversation, after } = parseInput(
      StreamQuery,
      { ...context.req.query(), ...query },
      'the query',
    );
    if (conversation === undefined && after !== undefined) throw notResumable();
    const { principal, troupe, traffic, isStillGood, reading } = callerOf(context);
    // One that does not exist yet may be followed, one that was not granted may not.
    if (conversation !== undefined && !isGranted(principal, conversation))
      throw unknownConversation(conversation);
    // Its body is never read, so that nothing would end it.
    if (context.req.method === 'HEAD') return context.body(null, 200, HEADERS);
    const place = traffic.openStream(principal);
    if ('full' in place) {
      throw rateLimited(
        `at most ${place.limit} open streams of ${WHOSE[place.full]}`,
        place.limit,
        STREAM_RETRY_MS,
      );
    }
    const gone = new AbortController();
    if (isStillGood) void untilUnknown(isStillGood, clock, gone);
    const over = () => {
      gone.abort();
      place.end();
    };
    const ends = signal ? AbortSignal.any([signal, gone.signal]) : gone.signal;
    // Whoever does not read would hold its place for as long as it likes.
    ends.addEventListener('abort', over, { once: true });
    const options = { troupe, clock, signal: ends };
    const live =
      conversation === undefined ? followAll(options) : followConversation(conversation, after ?? 0, options);
    const frames = reading ? reading.paced(live, ends) : live;
    const body = textStream(
      endingWith(
        asText(frames, (event) => (conversation === undefined ? '' : `id: ${event.seq}\n`)),
        over,
      ),
      { onCancel: over, ends, onUnread: () => cutOff(context) },
    );
    return context.body(body, 200, HEADERS);
  });
}

function notResumable(): TroupeError {
  const message = 'only the events of one conversation can be resumed: name it with ?conversation=';
  return new TroupeError('event_invalid', message, { path: 'conversation' });
}

/** A connection with more to send than its reader takes would stay until it is read. */
function cutOff({ env }: Context): void {
  const { outgoing } = Object(env) as { outgoing?: { destroy?: () => void } };
  outgoing?.destroy?.();
}

/** A reader may be gone before it has begun, so `over` is for `onCancel`, too. */
async function* endingWith(
  source: AsyncGenerator<string, void>,
  over: () => void,
): AsyncGenerator<string, void> {
  try {
    yield* source;
  } finally {
    over();
  }
}

type EventFrame = Extract<Frame, { type: 'event' }>;

async function* asText(
  frames: AsyncGenerator<Frame, void>,
  idOf: (event: EventFrame['event']) => string,
): AsyncGenerator<string, void> {
  yield `retry: ${RECONNECT_MS}\n\n`;
  for await (const frame of frames) yield frameText(frame, idOf);
}

function frameText(frame: Frame, idOf: (event: EventFrame['event']) => string): string {
  switch (frame.type) {
    case 'event':
      return `event: event\n${idOf(frame.event)}data: ${eventJson(frame.event)}\n\n`;
    case 'delta': {
      const { address, ...delta } = frame.delta;
      const { conversation, agent } = address;
      return `event: stream\ndata: ${JSON.stringify({ conversation, agent, ...delta })}\n\n`;
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
