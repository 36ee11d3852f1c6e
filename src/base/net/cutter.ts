const LF = 0x0a;
const CR = 0x0d;
const FIRST_BYTES = 4_096;

interface CutterOptions {
  /**
   * Unit of output: lines of JSON, or events of `text/event-stream`, which end with an empty line. Line ends of events
   * become line feeds.
   */
  of: 'lines' | 'events';
  /** Limit of one line or event. */
  maxBytes: number;
  /** What is thrown for a longer one. */
  tooLong: () => Error;
}

/**
 * Cuts chunks of any size into whole lines or events, and buffers at most one of them. Parsers join and rescan their
 * buffer with every chunk, which takes quadratic time for a long line in many small chunks; parsers of events also take
 * it for many lines with a carriage return among them. Given whole lines that end with line feeds, they look at each
 * byte once.
 */
export class Cutter {
  readonly #options: CutterOptions;
  #held = new Uint8Array(FIRST_BYTES);
  #size = 0;
  /** Bytes of the unfinished line or event. */
  #open = 0;
  #isLineEmpty = true;
  /** The last byte was a carriage return; a line feed may still belong to it. */
  #afterReturn = false;

  constructor(options: CutterOptions) {
    this.#options = options;
  }

  /** All lines or events that are complete by now, as one chunk; null if there are none. Throws `tooLong`. */
  take(received: Uint8Array): Uint8Array | null {
    const isLines = this.#options.of === 'lines';
    const piece = isLines ? received : this.#withLineFeeds(received);
    const end = isLines ? this.#endOfLines(piece) : this.#endOfEvents(piece);
    if (end === null) {
      this.#hold(piece);
      return null;
    }
    const whole = this.#size === 0 ? piece.subarray(0, end) : this.#joined(piece.subarray(0, end));
    this.#size = 0;
    this.#hold(piece.subarray(end));
    return whole;
  }

  /** The unfinished remainder at the end of the input. */
  rest(): Uint8Array | null {
    const rest = this.#size === 0 ? null : this.#held.slice(0, this.#size);
    this.#size = 0;
    this.#open = 0;
    return rest;
  }

  #endOfLines(piece: Uint8Array): number | null {
    let end: number | null = null;
    for (let at = piece.indexOf(LF); at !== -1; at = piece.indexOf(LF, at + 1)) {
      this.#grow(at + 1 - (end ?? 0));
      this.#open = 0;
      end = at + 1;
    }
    this.#grow(piece.length - (end ?? 0));
    return end;
  }

  #endOfEvents(piece: Uint8Array): number | null {
    let end: number | null = null;
    let start = 0;
    for (let at = piece.indexOf(LF); at !== -1; at = piece.indexOf(LF, start)) {
      if (at > start || !this.#isLineEmpty) this.#isLineEmpty = true;
      else {
        this.#grow(at + 1 - (end ?? 0));
        this.#open = 0;
        end = at + 1;
      }
      start = at + 1;
    }
    if (start < piece.length) this.#isLineEmpty = false;
    this.#grow(piece.length - (end ?? 0));
    return end;
  }

  /** The piece with a line feed for each CR LF and each CR. */
  #withLineFeeds(piece: Uint8Array): Uint8Array {
    if (!this.#afterReturn && !piece.includes(CR)) return piece;
    const fed = new Uint8Array(piece.length);
    let size = 0;
    for (const byte of piece) {
      if (byte !== LF || !this.#afterReturn) fed[size++] = byte === CR ? LF : byte;
      this.#afterReturn = byte === CR;
    }
    return fed.subarray(0, size);
  }

  #grow(bytes: number): void {
    this.#open += bytes;
    if (this.#open > this.#options.maxBytes) throw this.#options.tooLong();
  }

  /** Copies: a view would keep the whole chunk in memory. */
  #hold(piece: Uint8Array): void {
    const size = this.#size + piece.length;
    if (size > this.#held.length) {
      const larger = new Uint8Array(Math.max(size, this.#held.length * 2));
      larger.set(this.#held.subarray(0, this.#size));
      this.#held = larger;
    }
    this.#held.set(piece, this.#size);
    this.#size = size;
  }

  #joined(piece: Uint8Array): Uint8Array {
    const whole = new Uint8Array(this.#size + piece.length);
    whole.set(this.#held.subarray(0, this.#size));
    whole.set(piece, this.#size);
    return whole;
  }
}

interface ResponseBounds {
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
      // An endless stream is exempt: a few bytes now and then keep it alive.
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
