import { ERASED_WORDS } from '../../events/index.ts';

/**
 * Finds the words of a person in other texts. A text contains them if it repeats what only this person can have said first: a
 * run of `RUN` words, or a single rare word. Everyday words do not count.
 */
export interface PersonsWords {
  /** Adds a text of the person, with its time in ms. */
  readonly add: (text: string, at: number) => void;
  /** Adds a name of the person, whose words always count. */
  readonly addName: (name: string) => void;
  /** Adds a text of others. Rare words that they used before the person no longer count. */
  readonly exclude: (text: string, at: number) => void;
  /** The text with `ERASED_WORDS` in place of the person's words; the same text if it has none. */
  readonly mask: (text: string) => string;
  /** Like `mask`, but only for runs of words, and words with a digit or `@`, which nobody repeats by chance. */
  readonly maskRuns: (text: string) => string;
}

/** Number of words in a row that nobody repeats by chance. */
const RUN = 5;
const RARE = 4;

export function createPersonsWords(isCommon: (word: string) => boolean): PersonsWords {
  /** Rare words, with the time of their first use by the person. */
  const rare = new Map<string, number>();
  const names = new Set<string>();
  const runs = new Set<string>();

  function* runsOf(words: readonly Word[]): Generator<{ key: string; from: number }> {
    for (let from = 0; from + RUN <= words.length; from += 1)
      yield {
        key: words
          .slice(from, from + RUN)
          .map(({ word }) => word)
          .join(' '),
        from,
      };
  }

  function maskedBy(text: string, isHit: (word: string) => boolean): string {
    const words = wordsOf(text);
    const hit = words.map(({ parts }) => parts.some(isHit));
    for (const { key, from } of runsOf(words)) if (runs.has(key)) hit.fill(true, from, from + RUN);
    return replaceHits(text, words, hit);
  }

  return {
    add(text, at) {
      const words = wordsOf(text);
      for (const each of words)
        for (const word of each.parts)
          if (word.length >= RARE && !isCommon(word)) rare.set(word, Math.min(at, rare.get(word) ?? at));
      for (const { key } of runsOf(words)) runs.add(key);
    },
    addName(name) {
      for (const { parts } of wordsOf(name)) for (const word of parts) if (word.length >= 2) names.add(word);
    },
    exclude(text, at) {
      for (const { parts } of wordsOf(text))
        for (const word of parts) if (at < (rare.get(word) ?? at)) rare.delete(word);
    },
    mask: (text) => maskedBy(text, (word) => rare.has(word) || names.has(word)),
    maskRuns: (text) => maskedBy(text, (word) => rare.has(word) && /[\p{N}@]/u.test(word)),
  };
}

/** Replaces the hit words. Consecutive ones become one gap. */
function replaceHits(text: string, words: readonly Word[], hit: readonly boolean[]): string {
  let made = '';
  let at = 0;
  for (let index = 0; index < words.length; index += 1) {
    if (!hit[index]) continue;
    const first = words[index]!;
    while (hit[index + 1]) index += 1;
    made += text.slice(at, first.from) + ERASED_WORDS;
    at = words[index]!.to;
  }
  return at === 0 ? text : made + text.slice(at);
}

interface Word {
  word: string;
  /** The word and its parts: `4711` of `claim/4711`, `ana` of `ana's`. A part may identify the person as much as the word. */
  parts: readonly string[];
  from: number;
  to: number;
}

/** Words. In scripts without spaces each character is one. */
const WORD =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]|[\p{L}\p{N}][\p{L}\p{N}\p{M}]*(?:[-'’._@+/][\p{L}\p{N}\p{M}]+)*/gu;

const JOINTS = /[-'’._@+/]+/;

function wordsOf(text: string): Word[] {
  return [...text.matchAll(WORD)].map(({ 0: written, index }) => {
    const word = written.normalize('NFKC').toLowerCase();
    const inner = word.split(JOINTS);
    const parts = inner.length === 1 ? inner : [word, ...inner];
    return { word, parts, from: index, to: index + written.length };
  });
}
