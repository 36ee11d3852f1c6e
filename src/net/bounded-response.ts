import { Cutter } from './cutter.ts';

export interface ResponseBounds {
  /** Of everything, as decoded: of a compressed answer what it decodes to. */
  maxBytes: number;
  /** Of one event, where the answer is a stream of them, which then comes in whole events. */
  maxEventBytes?: number;
  /** What the body ends with when it is more than that. `pieces`: it comes in smaller ones than anybody who means well sends. */
  tooLong: (what: 'answer' | 'event' | 'pieces') => Error;
}

/** Of the body of a refusal: it is cut there, as its beginning says what is wrong. */
const MAX_ERROR_BYTES = 65_536;
/** So many pieces may be of any size. */
const FREE_PIECES = 10_000;
/** What pieces have on average at least, once there are more: each costs as much as hundreds of its bytes. */
const MIN_PIECE_BYTES = 16;

/** The same response with a body that ends where the bounds are, and is received only as fast as it is read. */
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
      // A stream that may go on for ever is kept alive with a few bytes now and then.
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
