import { sentencesOf } from './cut-text.ts';

/** Share of an entry's words that one sentence must have to say the same. */
const SAME = 0.75;
const STEM = 5;
const MAX_TEXT = 262_144;

/** Tells whether a text says something already: in the same words, or with most of them in one sentence or line. */
export function saidIn(text: string): (words: string) => boolean {
  let lines: ReadonlySet<string>[] | null = null;
  return (words) => {
    if (text.includes(words)) return true;
    const stems = stemsOf(words);
    if (stems.length < 2) return false;
    lines ??= sentencesOf(text.slice(0, MAX_TEXT)).map((line) => new Set(stemsOf(line)));
    return lines.some((line) => stems.filter((stem) => line.has(stem)).length >= stems.length * SAME);
  };
}

function stemsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_$][\p{L}\p{N}_$./-]*/gu) ?? [];
  return [
    ...new Set(words.filter((word) => word.length > 3 || /\d/.test(word)).map((word) => word.slice(0, STEM))),
  ];
}
