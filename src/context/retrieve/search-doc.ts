import type { Event } from '../../events/index.ts';
import { datesIn, dayOf, type Span } from './dates.ts';
import { readersOf, saidText } from './memory-text.ts';
import { wordHash, wordsOf } from './words.ts';

/** What an index holds of an event. */
export interface SearchDoc {
  seq: number;
  /** Seconds since 1970. */
  at: number;
  speaker: string;
  says: Says;
  /** The only agents that may find it; null: everybody may. */
  readers: readonly string[] | null;
  /** How often it has each word, by hash. */
  words: ReadonlyMap<number, number>;
  /** Number of its words. */
  length: number;
  /** The dates in it. */
  dates: readonly Span[];
}

export const SAYS = ['other', 'message', 'question'] as const;
export type Says = (typeof SAYS)[number];

/** Only the beginning of a long text is indexed, and searched for dates. */
const MAX_INDEXED_CHARS = 16_384;
const MAX_DATED_CHARS = 2_048;
const MAX_DATES = 16;

/** Null if the event says nothing. */
export function searchDoc(event: Event): SearchDoc | null {
  const text = saidText(event);
  if (text === null || text.trim() === '') return null;
  const { seq, at, author } = event;
  const words = new Map<number, number>();
  let length = 0;
  for (const word of wordsOf(text.slice(0, MAX_INDEXED_CHARS))) {
    const hash = wordHash(word);
    words.set(hash, (words.get(hash) ?? 0) + 1);
    length += 1;
  }
  const dates = datesIn(text.slice(0, MAX_DATED_CHARS), dayOf(at)).slice(0, MAX_DATES);
  const readers = readersOf(event);
  return {
    seq,
    at: Math.max(0, Math.floor(at / 1_000)),
    speaker: author.name,
    says: saysOf(event, text),
    readers,
    words,
    length,
    dates,
  };
}

function saysOf({ kind }: Event, text: string): Says {
  if (kind !== 'message') return 'other';
  return endsInQuestion(text) ? 'question' : 'message';
}

export function endsInQuestion(text: string): boolean {
  return QUESTION_MARKS.has(text.trimEnd().at(-1) ?? '');
}

/** Of any script, including the full-width and the Arabic one. */
const QUESTION_MARKS = new Set(['?', '\uFF1F', '\u061F', '\u037E']);
