import { createHash, createHmac, hash } from 'node:crypto';
import type { Steps } from './steps.ts';

/** 128 bits of SHA-256 as hex, short enough to store per layer and long enough to avoid collisions. */
export function hashText(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 32);
}

export const NO_TEXT = hashText('');

/** Characters hashed in one step, which takes less than a millisecond. */
export const HASHED = 262_144;

/** `hashText` of all pieces joined, in steps. No piece may begin with a low surrogate. */
export function* hashSteps(pieces: Iterable<string>): Steps<string> {
  const sum = createHash('sha256');
  for (const piece of pieces) {
    for (let from = 0; from < piece.length;) {
      const end = pieceEnd(piece, from);
      sum.update(piece.slice(from, end));
      yield end - from;
      from = end;
    }
  }
  return sum.digest('hex').slice(0, 32);
}

/** End of a piece. It never splits a surrogate pair, whose halves would be encoded as other bytes. */
function pieceEnd(text: string, from: number): number {
  const end = from + HASHED;
  if (end >= text.length) return text.length;
  const unit = text.charCodeAt(end - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? end - 1 : end;
}

/** The key of a fence: authors cannot guess it, and it is always the same for the same place in the log. */
export function fenceKey(secret: string, place: string): string {
  return createHmac('sha256', secret).update(place).digest('hex').slice(0, 8);
}

const KEYS = 1_000_000;

/** The key of a mark: like `fenceKey`, but six digits. */
export function markKey(secret: string, place: string): string {
  const bits = createHmac('sha256', secret).update(place).digest().readUIntBE(0, 6);
  return `${bits % KEYS}`.padStart(6, '0');
}
