import { gist, headTail } from './cut-text.ts';
import type { Scorable, Score } from './score-event.ts';

/** How short a text is quoted: whole, as a preview, or as what it comes to. */
export const LEVELS = ['whole', 'preview', 'gist'] as const;
export type Level = (typeof LEVELS)[number];

/** Something that may be quoted: a message, a key event, a step with its results, or a quote of the compaction before. */
export interface Candidate {
  seq: number;
  speaker: string;
  /** Of a person whose word does not count. */
  untrusted?: true;
  role: Scorable['role'];
  /** 1 for the newest round; a round begins with the words of a person. */
  round: number;
  scored: Score;
  /** Whether already the whole is a piece, as it was quoted before. */
  isCut: boolean;
  text: (level: Level) => string;
}

/** A candidate before its place among the others is known, with what it is judged by. */
export type Draft = Omit<Candidate, 'round' | 'scored'> & { judged: Omit<Scorable, 'role' | 'age'> };

const PREVIEW_TOKENS = 320;
const GIST_TOKENS = 120;

export function shortened(text: string, count: (text: string) => number): (level: Level) => string {
  return (level) => {
    if (level === 'whole') return text;
    return level === 'preview'
      ? headTail(text, PREVIEW_TOKENS, count)
      : headTail(gist(text), GIST_TOKENS, count);
  };
}
