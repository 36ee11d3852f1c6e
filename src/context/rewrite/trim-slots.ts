import type { EventId } from '../../events/index.ts';
import { estimateTokens, FRAME_TOKENS } from '../estimate-tokens.ts';
import { escapeMarks } from '../fence.ts';
import { type Line, linesOf, type Part, type Slot } from '../slot.ts';
import { partTokens, userMessage } from '../turn-input.ts';
import type { View } from '../view.ts';

/** Shows messages with a shorter text of theirs, and without images; header and fence stay. Sums are left to `recount`. */
export function trimSlots(view: View, trimmed: readonly { event: EventId; text: string }[]): void {
  if (trimmed.length === 0) return;
  const texts = new Map(trimmed.map(({ event, text }) => [event, text]));
  view.slots = view.slots.map((slot) => {
    if (slot.part) return trimPart(slot, slot.part, texts, view.secret);
    const text = slot.event === null ? undefined : texts.get(slot.event);
    if (text === undefined || slot.layer === 'summary') return slot;
    return {
      ...slot,
      message: { ...slot.message, content: text },
      tokens: estimateTokens(text) + FRAME_TOKENS,
    };
  });
}

function trimPart(slot: Slot, part: Part, texts: ReadonlyMap<EventId, string>, secret: string): Slot {
  if (!linesOf(part).some(({ event }) => texts.has(event))) return slot;
  const trim = (line: Line): Line => trimLine(line, texts.get(line.event));
  const shorter: Part = {
    ...part,
    plain: part.plain && trim(part.plain),
    handoffs: part.handoffs.map(trim),
    missed: part.missed.map(trim),
  };
  const message = userMessage(shorter, secret, slot.message.seqs);
  return { ...slot, part: shorter, message, tokens: partTokens(shorter, message.content, secret) };
}

function trimLine(line: Line, text: string | undefined): Line {
  if (text === undefined) return line;
  const { images: _, ...words } = line;
  const { content, from, to, tokens } = words;
  const shown = escapeMarks(text);
  const share = Math.min(1, shown.length / Math.max(1, to - from));
  return {
    ...words,
    content: content.slice(0, from) + shown + content.slice(to),
    to: from + shown.length,
    tokens: Math.ceil(tokens * share),
  };
}
