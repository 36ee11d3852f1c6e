import type { EventId, ImageRef, LiveItems, PromptMessage, TurnId } from '../events/index.ts';
import { IMAGE_TOKENS } from './tokens.ts';

/** One event as a line of a user message. Only its text is ever shortened, never what stands around it. */
export interface Line extends Framed {
  event: EventId;
  seq: number;
  /** Of the text alone. */
  tokens: number;
  /** What came with it as pictures; never empty. */
  images?: readonly ImageRef[];
}

/**
 * What a user message is made of, so that it can be made again with less in it: either one plain line, or a block of
 * hand-overs and of what was missed. `live` hangs at the end.
 */
export interface Part {
  plain: Line | null;
  handoffs: readonly Line[];
  missed: readonly Line[];
  live: { items: LiveItems; turn: TurnId } | null;
}

export type SlotLayer = 'summary' | 'history' | 'missed' | 'trigger';

/** A rendered message and what rewrites need to know of it. */
export interface Slot {
  message: PromptMessage;
  tokens: number;
  layer: SlotLayer;
  /** Of a user message; null for own words, results and a summary. */
  part: Part | null;
  /** Of own words and results. */
  event: EventId | null;
  /** Of a user message that may render no event: its place in the log, to tell whether a summary covers it. */
  at: number | null;
  /** Of own words: the step of which turn. */
  step: { turn: TurnId; index: number } | null;
  /** Of a result: where all of it is. */
  artifact: string | null;
  /** Shown as a placeholder. */
  pruned?: true;
}

/** Where a message begins and ends in the log; what the log does not have yet is beyond all it has. */
export function firstSeq({ message, at }: Slot): number {
  return message.seqs[0] ?? at ?? Infinity;
}

export function lastSeq({ message, at }: Slot): number {
  return message.seqs.at(-1) ?? at ?? Infinity;
}

export function linesOf(part: Part): readonly Line[] {
  return part.plain ? [part.plain] : [...part.handoffs, ...part.missed];
}

/** In the order in which the part names them. */
export function imagesIn(part: Part): ImageRef[] {
  return linesOf(part).flatMap(({ images = [] }) => images);
}

export function lineTokens({ tokens, images = [] }: Line): number {
  return tokens + images.length * IMAGE_TOKENS;
}

/** An author's text within what Troupe writes around it: `content.slice(from, to)` is the text. */
export interface Framed {
  content: string;
  from: number;
  to: number;
}

export function frame(before: string, text: string, after = ''): Framed {
  return { content: before + text + after, from: before.length, to: before.length + text.length };
}
