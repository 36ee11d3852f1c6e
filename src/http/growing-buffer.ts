const FIRST_BYTES = 4_096;
/** So many pieces may be of any size. */
const FREE_PIECES = 1_000;
/** What pieces have on average at least, once there are more: each costs as much as hundreds of its bytes. */
const MIN_PIECE_BYTES = 64;

/**
 * What comes in pieces, as one. Each piece is copied, so that it need not be kept: a list of pieces of one byte takes
 * hundreds of times their bytes. It doubles, and never believes a size that it was told.
 */
export class GrowingBuffer {
  #bytes = new Uint8Array(FIRST_BYTES);
  #pieces = 0;
  size = 0;

  append(piece: Uint8Array): void {
    const size = this.size + piece.length;
    if (size > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(size, this.#bytes.length * 2));
      larger.set(this.#bytes.subarray(0, this.size));
      this.#bytes = larger;
    }
    this.#bytes.set(piece, this.size);
    this.size = size;
    this.#pieces += 1;
  }

  /** Whether it comes in more and smaller pieces than anybody who means well sends. */
  isCrumbled(): boolean {
    return this.#pieces > FREE_PIECES && this.size < this.#pieces * MIN_PIECE_BYTES;
  }

  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.size);
  }
}
