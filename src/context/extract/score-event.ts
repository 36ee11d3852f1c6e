import { errorLines } from './find-errors.ts';
import { CONSTRAINT, DECISION, PENDING, REFUSAL } from './lexicon.ts';
import { findWords } from './find-names.ts';
import { sentencesOf } from './cut-text.ts';

/** Input for scoring an event. */
export interface Scorable {
  /** Spoken words; '' if there are only calls. */
  text: string;
  /** The calls, one line each. Words in their arguments are code and demand nothing. */
  calls: string;
  /** Results of the calls. */
  results: string;
  role: 'person' | 'key' | 'reply' | 'work' | 'system';
  /** 0 for the newest, 1 for the oldest. */
  age: number;
  /** Whether the previous compaction quoted it. */
  kept: boolean;
}

export interface Score {
  score: number;
  why: string[];
}

/** Only both ends of a long text are judged: the important words are there, and it stays cheap. */
const MAX_JUDGED = 6_000;
const LARGE_RESULT = 2_000;
const CODE = /```|=>|\bfunction\b|\bclass\b|[{};]\s*$/m;
const NUMBER = /(?:^|[^\w.])[$€£¥]?\d[\d.,:]*\d(?:%|\b)/g;

const ROLE_POINTS = { person: 4, key: 4, reply: 2, work: 0, system: 1 } as const;

/** How much an event is worth keeping, as a sum of named parts. Judges `most` characters of it. */
export function scoreEvent(
  { text, calls, results, role, age, kept }: Scorable,
  most: number = MAX_JUDGED,
): Score {
  const judged = (written: string) => bothEnds(written, Math.min(most, MAX_JUDGED));
  const spoken = judged(text);
  const sentences = sentencesOf(spoken);
  const matching = (pattern: RegExp): number => sentences.filter((sentence) => pattern.test(sentence)).length;
  const { paths, ids } = findWords(`${spoken}\n${judged(calls)}`, true);
  const parts: [name: string, points: number][] = [
    [role, ROLE_POINTS[role]],
    ['kept before', kept ? 2 : 0],
    ['recency', 3 * (1 - age)],
    ['obligation', upTo(4, 1.5 * (matching(CONSTRAINT) + matching(REFUSAL)))],
    ['decision', upTo(3, 1.5 * matching(DECISION))],
    ['open', upTo(3, 1.5 * matching(PENDING))],
    ['paths', upTo(2, 0.5 * paths.length)],
    ['ids', upTo(2, 0.5 * ids.length)],
    ['numbers', upTo(1, 0.25 * (spoken.match(NUMBER)?.length ?? 0))],
    ['code', CODE.test(spoken) ? 0.5 : 0],
    ['errors', upTo(4, 2 * errorLines(`${judged(results)}\n${spoken}`).length)],
    ['large result', -upTo(1.5, 0.5 * Math.log2(Math.max(1, results.length / LARGE_RESULT)))],
  ];
  const counted = parts
    .map(([name, points]) => [name, round(points)] as const)
    .filter(([, points]) => points !== 0);
  return {
    score: round(counted.reduce((sum, [, points]) => sum + points, 0)),
    why: counted.map(([name, points]) => `${name} ${points > 0 ? '+' : ''}${points}`),
  };
}

function bothEnds(text: string, most: number): string {
  if (text.length <= most) return text;
  const half = Math.floor(most / 2);
  return `${text.slice(0, half)}\n${text.slice(text.length - half)}`;
}

function upTo(max: number, points: number): number {
  return Math.min(max, points);
}

/** To hundredths, so that sums are equal on every machine and readable. */
function round(points: number): number {
  return Math.round(points * 100) / 100;
}
