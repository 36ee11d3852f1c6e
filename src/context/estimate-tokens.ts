/** For prose that Troupe writes itself. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** For headers, fences and reminders: their keys and times take a token for about every two characters. */
export function estimateFraming(length: number): number {
  return Math.ceil(Math.max(0, length) / 2);
}

/** What a provider adds to every message. */
export const FRAME_TOKENS = 4;

/**
 * For an image, whatever its size. Anthropic's documentation of its vision says that what has more than about 1,600
 * tokens is scaled down to that. Newer models may count a large picture higher, small ones are less; what providers
 * report makes up for it.
 */
export const IMAGE_TOKENS = 1_600;
