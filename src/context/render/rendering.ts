/**
 * Version of the rules by which words of others are rendered. Old prompts must be rendered by their old
 * rules for ever, or they could not be verified. So the version is logged with the turn; without one it is 1.
 *   2  The newest `MOST_SHOWN` pending characters are whole. In an author's own words no line looks like an
 *   attachment. People with confusable names count as namesakes, and no label begins with a word of Troupe's headers.
 *   3  One mark around a block instead of a fence around each event, names once per run of lines and none of an answer to
 *   the line before, times where they say more than the last one. No name ends like a mark.
 *   4  What an imported file says in the name of the runtime is an imported note.
 */
export const RENDERING = 4;

/** Characters newly shown to a turn: more than any window takes. Version 1 only knew the limit of a request. */
const MOST_SHOWN = 8 * 1_048_576;
const MOST_REQUEST = 32 * 1_048_576;

export function mostShown(rendering: number): number {
  return rendering >= 2 ? MOST_SHOWN : MOST_REQUEST;
}
