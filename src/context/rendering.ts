/**
 * By which rules the words of others are rendered. What was sent once is rendered by the rules of its time for ever, or
 * it could not be verified: so the version is logged with the turn, and where none is logged it is 1.
 *   2  Of all that waits for a turn the newest `MOST_SHOWN` characters are whole, and in
 *      an author's own words no line looks like that of an attachment. People whose names look the same are namesakes,
 *      and nobody's label begins as what Troupe writes in headers itself.
 */
export const RENDERING = 2;

/** Of all that a turn is shown anew, in characters: more than any window takes; version 1 only knew what a request takes. */
const MOST_SHOWN = 8 * 1_048_576;
const MOST_REQUEST = 32 * 1_048_576;

export function mostShown(rendering: number): number {
  return rendering >= 2 ? MOST_SHOWN : MOST_REQUEST;
}
