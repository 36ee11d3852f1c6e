import { Cutter } from './cutter.ts';

export interface ResponseBounds {
  /** Limit of the whole body, after decompression. */
  maxBytes: number;
  /** Limit of one event. If set, the body is a stream of events and is passed on in whole events. */
  maxEventBytes?: number;
  /** The error that ends a body beyond its limits. `pieces`: the chunks are smaller than any honest server sends. */
  tooLong: (what: 'answer' | 'event' | 'pieces') => Error;
}

/** Error bodies are cut here: their beginning says what is wrong. */
const MAX_ERROR_BYTES = 65_536;
/** Number of chunks that may have any size. */
const FREE_PIECES = 10_000;
/** Minimum average chunk size beyond `FREE_PIECES`: handling a chunk costs as much as hundreds of its bytes. */
const MIN_PIECE_BYTES = 16;

/** The same response with a bounded body. Backpressure is kept: the body is received only as fast as it is read. */
export function boundedResponse(response: Response, bounds: ResponseBounds): Response {
  const { body, status, statusText, headers } = response;
  if (!body) return response;
  const bounded = body.pipeThrough(response.ok ? within(bounds) : cutAt(MAX_ERROR_BYTES));
  return new Response(bounded, { status, statusText, headers });
}

function within({
  maxBytes,
  maxEventBytes,
  tooLong,
}: ResponseBounds): TransformStream<Uint8Array, Uint8Array> {
  const cutter =
    maxEventBytes === undefined
      ? null
      : new Cutter({ of: 'events', maxBytes: maxEventBytes, tooLong: () => tooLong('event') });
  let received = 0;
  let pieces = 0;
  return new TransformStream({
    transform(piece, controller) {
      received += piece.length;
      pieces += 1;
      if (received > maxBytes) throw tooLong('answer');
      // An endless stream is exempt: it is kept alive with a few bytes now and then.
      if (Number.isFinite(maxBytes) && pieces > FREE_PIECES && received < pieces * MIN_PIECE_BYTES)
        throw tooLong('pieces');
      const whole = cutter ? cutter.take(piece) : piece;
      if (whole) controller.enqueue(whole);
    },
    flush(controller) {
      const rest = cutter?.rest();
      if (rest) controller.enqueue(rest);
    },
  });
}

function cutAt(maxBytes: number): TransformStream<Uint8Array, Uint8Array> {
  let received = 0;
  return new TransformStream({
    transform(piece, controller) {
      if (received + piece.length > maxBytes) {
        controller.enqueue(piece.subarray(0, maxBytes - received));
        controller.terminate();
      } else controller.enqueue(piece);
      received += piece.length;
    },
  });
}
