/** For framing text that Troupe writes itself: headers, fences, reminders. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4);
}
