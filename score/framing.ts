import { countTokens } from '../src/context/budget/tokens.ts';
import { recipientIn } from '../src/context/render/lines.ts';
import { linesOf, type Part, type Slot } from '../src/context/view/view.ts';

/** What a part of a prompt costs beyond the words that were said. */
export interface Framing {
  /** Tokens of user messages as sent. */
  sent: number;
  /** Tokens of the words alone. */
  words: number;
  /** Of the rest, tokens of the names of speakers and recipients. */
  names: number;
  lines: number;
}

export function noFraming(): Framing {
  return { sent: 0, words: 0, names: 0, lines: 0 };
}

/** Adds the user messages among the slots that `isCounted` accepts. A summary is not counted: it has no lines. */
export function addFraming(
  to: Framing,
  slots: readonly Slot[],
  isCounted: (part: Part) => boolean = () => true,
): void {
  for (const { part, message } of slots) {
    if (!part || !isCounted(part)) continue;
    const lines = linesOf(part);
    to.sent += countTokens(message.content);
    to.lines += lines.length;
    let before = '';
    for (const { content, from, to: end, by = '' } of lines) {
      to.words += countTokens(content.slice(from, end));
      // Of an answer, a block shows no name.
      const isNamed = by !== before && (part.plain !== null || by !== recipientIn(before));
      if (isNamed && by !== '') to.names += countTokens(by);
      before = by;
    }
  }
}

export function shareOf({ sent, words }: Framing): number {
  return sent === 0 ? NaN : (sent - words) / sent;
}

export function perLine({ sent, words, lines }: Framing): number {
  return lines === 0 ? NaN : (sent - words) / lines;
}

/** The share of marks and times alone, if names count as words. */
export function markShareOf({ sent, words, names }: Framing): number {
  return sent === 0 ? NaN : (sent - words - names) / sent;
}
