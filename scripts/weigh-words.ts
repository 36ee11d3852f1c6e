import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type Ratchet, runRatchet } from './ratchet.ts';

/**
 * `npm run weigh:words`: what the documents and comments cost their readers. `test/weight/words.test.ts` holds the counts against
 * `scripts/words-weight.json`: they may rise by a fiftieth, so that a sentence needs no ceremony. `--save` writes a lower record.
 */
export interface WordsWeight {
  readme: number;
  /** Pages for users, written by hand: the tutorial, how-tos, reference and explanation. */
  documents: number;
  /** Pages of `docs/contributing`. */
  contributing: number;
  /** Pages that `npm run docs` writes. */
  generated: number;
  changelog: number;
  /** Words in comments of `src`, per 1,000 lines. */
  commentsPer1000: number;
}

const ROOT = path.dirname(import.meta.dirname);
const GENERATED = '<!-- Written by `npm run docs`';
/** What a count may rise by without a new record. */
const SLACK = 1.02;
/** Generated pages grow with the code, whose settings and comments have records of their own; the changelog with each change. */
const FREE: readonly (keyof WordsWeight)[] = ['generated', 'changelog'];

export function weighWords(): WordsWeight {
  const pages = filesIn('docs', '.md').map((file) => ({ file, text: read(file) }));
  const isGenerated = ({ text }: { text: string }) => text.includes(GENERATED);
  const written = pages.filter((page) => !isGenerated(page));
  const isForContributors = ({ file }: { file: string }) => file.startsWith('docs/contributing/');
  const sources = filesIn('src', '.ts').map(read);
  const lines = sum(sources.map((text) => text.split('\n').length - 1));
  const wordsIn = (texts: readonly { text: string }[]) => sum(texts.map(({ text }) => countWords(text)));
  return {
    readme: countWords(read('README.md')),
    documents: wordsIn(written.filter((page) => !isForContributors(page))),
    contributing: wordsIn(written.filter(isForContributors)),
    generated: wordsIn(pages.filter(isGenerated)),
    changelog: countWords(read('CHANGELOG.md')),
    commentsPer1000: Math.round((sum(sources.map(wordsOfComments)) * 1_000) / lines),
  };
}

const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);

/** From the root. */
function filesIn(folder: string, ending: string): string[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => path.posix.join(folder, name.replaceAll(path.sep, '/')));
}

/** Everything between spaces that has a letter or a digit, as a reader meets it. */
export function countWords(text: string): number {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

/** The sources are formatted, so that a comment begins a line, or follows code after a space. */
export function wordsOfComments(text: string): number {
  const blocks = [...text.matchAll(/^\s*\/\*\*?([^]*?)\*\//gm)].map(([, body = '']) =>
    body.replaceAll(/^\s*\*/gm, ''),
  );
  const lines = [...text.matchAll(/(?:^|\s)\/\/ (.*)$/gm)].map(([, body = '']) => body);
  return sum([...blocks, ...lines].map(countWords));
}

/** A line for each count that is more than a fiftieth above the record. */
export function wordierThan(record: WordsWeight, now: WordsWeight): string[] {
  return (Object.keys(now) as (keyof WordsWeight)[]).flatMap((count) => {
    const isHeld = !FREE.includes(count) && now[count] > Math.ceil(record[count] * SLACK);
    return isHeld ? [`${count}: ${now[count]}, the record says ${record[count]}`] : [];
  });
}

export const WORDS: Ratchet<WordsWeight> = {
  record: 'words-weight.json',
  weigh: weighWords,
  worse: wordierThan,
};

if (import.meta.main) runRatchet(WORDS);
