/** Long enough that prose says it twice only where it repeats itself: a sentence, a path with what stands around it. */
const WINDOW_CHARS = 40;
/** Too short to tell a loop from a refrain. */
const LEAST_CHARS = 240;
const MAX_SHARE = 0.35;

/**
 * Whether a model has run in circles: more than a third of what it wrote stands in what it wrote before. Small models
 * end that way, with one sentence until their room is used up. Each window of letters is looked at once.
 */
export function isRepetitive(text: string): boolean {
  const letters = text.toLowerCase().replace(/\s+/g, ' ').trim();
  const windows = letters.length - WINDOW_CHARS + 1;
  if (letters.length < LEAST_CHARS) return false;
  const seen = new Set<string>();
  for (let at = 0; at < windows; at += 1) seen.add(letters.slice(at, at + WINDOW_CHARS));
  return windows - seen.size > windows * MAX_SHARE;
}
