const LF = 0x0a;
const CR = 0x0d;
const FIRST_BYTES = 4_096;

export interface CutterOptions {
  /** What is given out whole: lines of JSON, or events of `text/event-stream`, which end with an empty line. */
  of: 'lines' | 'events';
  /** Of one line or event. */
  maxBytes: number;
  tooLong: () => Error;
}

/**
 * Gives out what comes in pieces of any size in whole lines or events, and holds no more than one of them. Parsers that
 * are given pieces join and search them again with each one, so that small pieces of a long line take quadratic time;
 * of whole lines each byte is looked at once.
 */
export class Cutter {
  readonly #options: CutterOptions;
  #held = new Uint8Array(FIRST_BYTES);
  #size = 0;
  /** Bytes of the event or line that is not whole yet. */
  #open = 0;
  #isLineEmpty = true;
  #afterReturn = false;
  /** An event ended with a carriage return, which a line feed may follow. */
  #endsHere = false;

  constructor(options: CutterOptions) {
    this.#options = options;
  }

  /** All that is whole by now, in one piece; null where nothing is. Throws `tooLong`. */
  take(piece: Uint8Array): Uint8Array | null {
    const end = this.#options.of === 'lines' ? this.#endOfLines(piece) : this.#endOfEvents(piece);
    if (end === null) {
      this.#hold(piece);
      return null;
    }
    const whole = this.#size === 0 ? piece.subarray(0, end) : this.#joined(piece.subarray(0, end));
    this.#size = 0;
    this.#hold(piece.subarray(end));
    return whole;
  }

  /** What is left when nothing more comes. */
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
    for (let at = 0; at < piece.length; at += 1) {
      const byte = piece[at];
      if (this.#endsHere) {
        const next = byte === LF ? at + 1 : at;
        this.#grow(next - (end ?? 0));
        this.#open = 0;
        this.#endsHere = false;
        end = next;
      }
      if (byte === LF && this.#afterReturn) {
        this.#afterReturn = false;
        continue;
      }
      this.#afterReturn = byte === CR;
      if (byte !== LF && byte !== CR) {
        this.#isLineEmpty = false;
      } else if (!this.#isLineEmpty) {
        this.#isLineEmpty = true;
      } else if (byte === CR) {
        this.#endsHere = true;
      } else {
        this.#grow(at + 1 - (end ?? 0));
        this.#open = 0;
        end = at + 1;
      }
    }
    this.#grow(piece.length - (end ?? 0));
    return end;
  }

  #grow(bytes: number): void {
    this.#open += bytes;
    if (this.#open > this.#options.maxBytes) throw this.#options.tooLong();
  }

  /** Copied: a view would keep all of the piece that it is of. */
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
