import type { EventId, ImageRef, LiveItems, PromptMessage, TurnId } from '../events/index.ts';
import { IMAGE_TOKENS } from './tokens.ts';

/** One event as a line of a user message. Only its text is ever shortened, never its frame. */
export interface Line extends Framed {
  event: EventId;
  seq: number;
  /** Tokens of the text alone. */
  tokens: number;
  /** Its images; never empty. */
  images?: readonly ImageRef[];
  /** The speaker named in front of the text, and the minute. Absent where the line names nobody. */
  by?: string;
  at?: string;
}

/**
 * The parts of a user message, kept so that a shorter one can be rendered: either one plain line, or a block of
 * handoffs and missed lines. `live` stands at the end.
 */
export interface Part {
  plain: Line | null;
  handoffs: readonly Line[];
  missed: readonly Line[];
  live: { items: LiveItems; turn: TurnId } | null;
  /** The role, if it is not that of a user. */
  as?: 'system';
  /** The last minute told before this message, null for none. */
  told: string | null;
  /** Rendered in plain words. Absent: with marks. */
  framing?: 'plain';
}

export type SlotLayer = 'summary' | 'history' | 'missed' | 'trigger';

/** A rendered message, with what a compaction needs to know of it. */
export interface Slot {
  message: PromptMessage;
  tokens: number;
  layer: SlotLayer;
  /** Set for user messages. Null for own words, results and a summary. */
  part: Part | null;
  /** Set for own words and results. */
  event: EventId | null;
  /** Set for user messages, which may render no event: the place in the log, to tell whether a summary covers it. */
  at: number | null;
  /** Set for own words: the turn and its step. */
  step: { turn: TurnId; index: number } | null;
  /** Set for results: id of the artifact with the whole output. */
  artifact: string | null;
  /** Shown as a placeholder. */
  pruned?: true;
}

/** Place of a message in the log. Messages that are not in the log yet come after all others. */
export function firstSeq({ message, at }: Slot): number {
  return message.seqs[0] ?? at ?? Infinity;
}

export function lastSeq({ message, at }: Slot): number {
  return message.seqs.at(-1) ?? at ?? Infinity;
}

export function linesOf(part: Part): readonly Line[] {
  return part.plain ? [part.plain] : [...part.handoffs, ...part.missed];
}

/** The images of a part, in the order in which it names them. */
export function imagesIn(part: Part): readonly ImageRef[] {
  return part.plain ? (part.plain.images ?? NONE) : linesOf(part).flatMap(({ images = NONE }) => images);
}

const NONE: readonly ImageRef[] = [];

export function lineTokens({ tokens, images = [] }: Line): number {
  return tokens + images.length * IMAGE_TOKENS;
}

/** An author's text within Troupe's frame: `content.slice(from, to)` is the text. */
export interface Framed {
  content: string;
  from: number;
  to: number;
}

export function frame(before: string, text: string, after = ''): Framed {
  return { content: before + text + after, from: before.length, to: before.length + text.length };
}
