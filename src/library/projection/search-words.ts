import type { Event } from '../../events/index.ts';
import { rowOf } from './row.ts';

/** A search: words, and phrases in quotes. A text must have all of them, each at the beginning of a word. */
export interface WordQuery {
  /** The words and phrases, in lower case. */
  needles: readonly string[];
  /** Conditions on the terms of a text that has the needles. Empty if the needles are only signs. */
  terms: readonly { term: string; whole: boolean }[];
}

/** A match in an event. */
export interface Found {
  /** The text around the match that has most of the needles. */
  excerpt: string;
  /** Where the needles are in the excerpt: start and end. */
  marks: [start: number, end: number][];
}

/** Letters that are written without spaces: each is a word by itself. */
const UNSPACED = /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Khmr}\p{scx=Laoo}\p{scx=Mymr}]/u;
const LETTER = /[\p{L}\p{N}\p{M}]/u;
/** Terms are compared by their beginning, so a longer word is cut. */
const TERM_LENGTH = 40;
/** Shorter words must match whole: too many words begin with them. */
const SHORTEST_BEGINNING = 3;
const NEEDLE = /"([^"]+)"|\S+/g;
const MAX_NEEDLES = 12;

type Kind = 'other' | 'letter' | 'unspaced';

/** Kinds of the characters of the basic plane, each determined once: expressions are too slow for megabytes. */
const KINDS: Kind[] = [];

function kindAt(text: string, at: number): Kind {
  const code = text.charCodeAt(at);
  return (KINDS[code] ??= isSurrogate(code) ? 'letter' : kindOf(String.fromCharCode(code)));
}

/** Halves of characters beyond the basic plane belong to a word: letters of rare scripts, and signs. */
const isSurrogate = (code: number) => code >= 0xd800 && code <= 0xdfff;

function kindOf(char: string): Kind {
  if (!LETTER.test(char)) return 'other';
  return UNSPACED.test(char) ? 'unspaced' : 'letter';
}

/** Words in lower case, cut to the length of terms. */
export function wordsOf(text: string): string[] {
  const lower = text.toWellFormed().toLowerCase();
  const words: string[] = [];
  let start = -1;
  for (let at = 0; at <= lower.length; at += 1) {
    const kind = at === lower.length ? 'other' : kindAt(lower, at);
    if (kind === 'letter') {
      if (start < 0) start = at;
      continue;
    }
    if (start >= 0) words.push(at - start > TERM_LENGTH ? cut(lower, start) : lower.slice(start, at));
    start = -1;
    if (kind === 'unspaced') words.push(lower[at]!);
  }
  return words;
}

const cut = (lower: string, start: number) => lower.slice(start, start + TERM_LENGTH).toWellFormed();

export function wordQuery(text: string): WordQuery {
  const needles = [...text.toLowerCase().matchAll(NEEDLE)]
    .map(([all, quoted]) => (quoted ?? all).trim())
    .filter((needle) => wordsOf(needle).length > 0)
    .slice(0, MAX_NEEDLES);
  return { needles, terms: needles.flatMap(beginningsOf) };
}

/** Terms that a text has if it has the phrase. The last word of the phrase may be the beginning of a longer one. */
export function beginningsOf(phrase: string): { term: string; whole: boolean }[] {
  const words = wordsOf(phrase);
  return words.flatMap((term, index): { term: string; whole: boolean }[] => {
    const mayGoOn = index === words.length - 1 && kindAt(term, 0) === 'letter';
    if (term.length === TERM_LENGTH) return [{ term, whole: false }];
    if (!mayGoOn) return [{ term, whole: true }];
    if (term.length >= SHORTEST_BEGINNING) return [{ term, whole: false }];
    return index === 0 ? [{ term, whole: true }] : [];
  });
}

/** The term of all passages of a conversation. */
export const conversationTerm = (id: string) => `=${id}`.toLowerCase();

/** Most terms of the events of one passage. Long random texts have more; the search does not find all of their words. */
const MAX_TERMS = 20_000;

/** Adds the terms of an event: its words, and `@agent` for the agents that it is by, about or to. */
export function addTerms(event: Event, terms: Set<string>): void {
  const { agent, to } = rowOf(event);
  for (const each of agent === null ? to : [agent, ...to]) terms.add(`@${each}`.toLowerCase());
  for (const text of textsOf(event)) {
    for (const word of wordsOf(text)) {
      if (terms.size >= MAX_TERMS) return;
      terms.add(word);
    }
  }
}

const EXCERPT = 160;

/** Where an event has the needles. Null if one is missing. */
export function findWords(event: Event, { needles }: WordQuery): Found | null {
  const missing = new Set(needles);
  let best = { text: '', lower: '', at: 0, count: 0 };
  for (const text of textsOf(event)) {
    const lower = text.toLowerCase();
    const places = needles.map((needle) => ({ needle, at: indexOfWord(lower, needle, 0) }));
    const there = places.filter(({ at }) => at >= 0);
    for (const { needle } of there) missing.delete(needle);
    if (there.length > best.count) best = { text, lower, at: there[0]!.at, count: there.length };
    if (best.count === needles.length) break;
  }
  return missing.size === 0 && best.count > 0 ? excerptOf(best, needles) : null;
}

function excerptOf({ text, at }: { text: string; at: number }, needles: readonly string[]): Found {
  const spare = Math.max(0, EXCERPT - needles[0]!.length);
  const from = Math.max(0, Math.min(at - (spare >> 1), text.length - EXCERPT));
  const part = text
    .slice(from, from + EXCERPT)
    .toWellFormed()
    .replace(/\s+/g, ' ')
    .trim();
  const excerpt = `${from > 0 ? '…' : ''}${part}${from + EXCERPT < text.length ? '…' : ''}`;
  return { excerpt, marks: marksOf(excerpt.toLowerCase(), needles) };
}

function marksOf(lower: string, needles: readonly string[]): Found['marks'] {
  const marks: Found['marks'] = [];
  for (const needle of needles) {
    for (let at = indexOfWord(lower, needle, 0); at >= 0; at = indexOfWord(lower, needle, at + needle.length))
      marks.push([at, at + needle.length]);
  }
  const sorted = marks.toSorted(([a], [b]) => a - b);
  return sorted.filter(([start], index) => index === 0 || start >= sorted[index - 1]![1]);
}

/** Position of a needle at the beginning of a word, a short one as a whole word; -1 if there is none. */
function indexOfWord(lower: string, needle: string, from: number): number {
  const begins = kindAt(needle, 0) === 'letter';
  const ends = begins && needle.length < SHORTEST_BEGINNING && wordsOf(needle)[0] === needle;
  for (let at = lower.indexOf(needle, from); at >= 0; at = lower.indexOf(needle, at + 1)) {
    const isInside = begins && at > 0 && kindAt(lower, at - 1) === 'letter';
    const end = at + needle.length;
    const goesOn = ends && end < lower.length && kindAt(lower, end) === 'letter';
    if (!isInside && !goesOn) return at;
  }
  return -1;
}

/** Depth to which bodies are searched. Deeper values are data that no list shows. */
const MAX_DEPTH = 8;

/** The texts of an event: those of its body, and the name of its author. */
function* textsOf(event: Event): Generator<string> {
  const { author, body } = event as { author?: { name?: unknown }; body?: unknown };
  yield* stringsIn(body, 0);
  yield* stringsIn(author?.name, 0);
}

function* stringsIn(value: unknown, depth: number): Generator<string> {
  if (typeof value === 'string') yield value;
  if (typeof value !== 'object' || value === null || depth >= MAX_DEPTH) return;
  for (const each of Object.values(value)) yield* stringsIn(each, depth + 1);
}
