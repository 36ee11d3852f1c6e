import type { Hono } from 'hono';
import type { Clock } from '../../clock.ts';
import { TroupeError } from '../../errors.ts';
import type { Troupe } from '../../troupe.ts';
import { followAll, followConversation, type Frame } from '../follow.ts';
import { parseInput, StreamQuery } from '../schemas.ts';
import { textStream } from '../text-stream.ts';

const RECONNECT_MS = 1_000;

/**
 * Server-sent events: `event` frames, which can be resumed; `stream` frames with a reply as it is written, and `state`
 * frames with what the machines of agents go through, which cannot.
 */
export function addStreamRoutes(
  app: Hono,
  troupe: Troupe,
  { clock, signal }: { clock: Clock; signal: AbortSignal | undefined },
): void {
  app.get('/api/events', (context) => {
    const lastId = context.req.header('last-event-id');
    const query = lastId === undefined ? {} : { after: lastId };
    const { conversation, after } = parseInput(
      StreamQuery,
      { ...context.req.query(), ...query },
      'the query',
    );
    if (conversation === undefined && after !== undefined) throw notResumable();
    const gone = new AbortController();
    const options = { troupe, clock, signal: signal ? AbortSignal.any([signal, gone.signal]) : gone.signal };
    const frames =
      conversation === undefined ? followAll(options) : followConversation(conversation, after ?? 0, options);
    const body = textStream(
      asText(frames, (event) => (conversation === undefined ? '' : `id: ${event.seq}\n`)),
      () => gone.abort(),
    );
    return context.body(body, 200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      // Ends with its stream, so that a closing server need not wait for it to time out.
      connection: 'close',
    });
  });
}

function notResumable(): TroupeError {
  const message = 'only the events of one conversation can be resumed: name it with ?conversation=';
  return new TroupeError('event_invalid', message, { path: 'conversation' });
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
      return `event: event\n${idOf(frame.event)}data: ${JSON.stringify(frame.event)}\n\n`;
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
