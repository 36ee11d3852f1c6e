import { ERASED_WORDS } from '../../events/index.ts';

/**
 * The words of a person, and where else they stand. A text of somebody else carries them where it repeats what only this person can
 * have said first: a run of `RUN` words, or a single rare word. Everyday words alone say nothing of anybody.
 */
export interface PersonsWords {
  /** Text of the person, with its time, ms. */
  readonly add: (text: string, at: number) => void;
  /** A name of the person, which is always hers. */
  readonly addName: (name: string) => void;
  /** Text of others: what they said before the person did is theirs. */
  readonly exclude: (text: string, at: number) => void;
  /** The text with `ERASED_WORDS` in place of the person's; the same text if it carries none. */
  readonly mask: (text: string) => string;
  /** The same for what nobody repeats by chance: runs of words, and words with a digit or `@`. */
  readonly maskRuns: (text: string) => string;
}

/** Words in a row that nobody repeats by chance. */
const RUN = 5;
/** Letters and digits of a rare word, at least. */
const RARE = 4;

/** `isCommon`: an everyday word. */
export function createPersonsWords(isCommon: (word: string) => boolean): PersonsWords {
  /** Rare words, with the time of the first. */
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

/** Neighbours are one hole. */
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
  /** The word and what it is made of: `4711` of `claim/4711`, `ana` of `ana's`. A part of a word says as much as the word. */
  parts: readonly string[];
  from: number;
  to: number;
}

/** Scripts without spaces count letter by letter. */
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
