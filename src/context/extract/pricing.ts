import type { Quote } from '../../events/index.ts';
import { type Candidate, JOINT } from './candidates.ts';
import { countingWork } from '../budget/tokens.ts';
import { errorLines } from './findings.ts';
import { GOAL, isGoalOrDemand } from './lexicon.ts';
import { sentencesOf, whole } from '../text/cut-text.ts';
import { header, NOT_TRUSTED } from '../text/people.ts';

type Count = (text: string) => number;

/** A candidate as quoted, with its cost. */
export interface Kept {
  candidate: Candidate;
  text: string;
  cut: boolean;
  tokens: number;
}

export interface Pricing {
  count: Count;
  /** The candidate shortened to a level of `atLevel`. */
  at: (candidate: Candidate, level: number) => Kept;
  /** The most important parts of the candidate within `tokens`. Null if there is no room for any. */
  within: (candidate: Candidate, tokens: number) => Kept | null;
  /** The candidate with this text, which is a part of its whole. */
  as: (candidate: Candidate, text: string) => Kept;
  /** Estimated tokens at a level, by the stored count of the whole. For choices that need no exact count. */
  roughly: (candidate: Candidate, level: number) => number;
  /** The work since the last call of this method, in the characters of `Steps`. */
  work: () => number;
}

/** Shorter pieces say nothing. */
const MIN_PIECE_TOKENS = 16;

/** Tokens of brackets, number and colon of a quote on one line. */
const LINE_TOKENS = 6;
/** Tokens of brackets, number and fence of a longer quote. Two keys of eight hexadecimal digits take most of them. */
const FENCED_TOKENS = 28;
/** Tokens of the mark of an untrusted speaker, or of a replaced message. */
const RANK_TOKENS = 5;

/** Characters that some reader treats as a line end. */
const LINE_END = /[\n\r\v\f\u0085\u2028\u2029]/;

/** Whether a quote needs a fence. On one line it needs none, because it cannot pass for another speaker's line. */
export function isFenced(text: string): boolean {
  return LINE_END.test(text);
}

/** The head of a quote: its speaker and number, and whether it is untrusted or replaced. */
export function quoteHead({ seq, speaker, untrusted, replacedBy }: Quote): string {
  const taken = replacedBy === undefined ? '' : ` (replaced by #${replacedBy})`;
  return `${header(speaker)} #${seq}${untrusted ? ` ${NOT_TRUSTED}` : ''}${taken}`;
}

/** Tokens of a quote in a prompt: its words, its speaker, and the marks around both. */
export function quoteTokens(
  { speaker, text, untrusted, replacedBy }: Pick<Quote, 'speaker' | 'text' | 'untrusted' | 'replacedBy'>,
  count: Count,
): number {
  return (
    count(text) +
    count(speaker) +
    (isFenced(text) ? FENCED_TOKENS : LINE_TOKENS) +
    (untrusted ? RANK_TOKENS : 0) +
    (replacedBy === undefined ? 0 : RANK_TOKENS)
  );
}

/** Counts each form of a text once. Uses the stored count for whole texts. */
export function createPricing(counted: Count): Pricing {
  const known = new Map<Candidate, Map<number, Kept>>();
  let work = 0;
  const count: Count = (text) => {
    work += countingWork(text.length);
    return counted(text);
  };
  const price = (candidate: Candidate, text: string, cut: boolean): Kept => {
    const { whole, tokens: stored } = candidate;
    const countOf = (words: string) => (words === whole && stored !== undefined ? stored : count(words));
    const tokens = quoteTokens({ ...candidate, text }, countOf);
    return { candidate, text, cut, tokens };
  };
  const shown = (candidate: Candidate, level: number): string => {
    work += candidate.whole.length;
    return shownAt(candidate, level);
  };
  const as = (candidate: Candidate, text: string): Kept =>
    price(candidate, text, candidate.isCut || text !== candidate.whole);
  return {
    count,
    as,
    at(candidate, level) {
      const forms = known.get(candidate) ?? new Map<number, Kept>();
      known.set(candidate, forms);
      const form = forms.get(level) ?? as(candidate, shown(candidate, level));
      forms.set(level, form);
      return form;
    },
    within(candidate, tokens) {
      const { whole } = candidate;
      const frame = quoteTokens({ ...candidate, text: '\n' }, count);
      if (tokens - frame < MIN_PIECE_TOKENS) return null;
      const text = mostImportant(whole, tokens - frame, count);
      return text === null ? null : as(candidate, text);
    },
    roughly(candidate, level) {
      const { length } = shown(candidate, level);
      const { whole, tokens: stored } = candidate;
      return Math.ceil(stored === undefined ? length / 4 : (stored * length) / Math.max(1, whole.length));
    },
    work() {
      const done = work;
      work = 0;
      return done;
    },
  };
}

/** Levels added for a pinned message, which keeps several times the length of others. */
const PINNED_LEVELS = 16;

function shownAt({ whole, pinned }: Candidate, level: number): string {
  const most = pinned ? Math.min(WHOLE_LEVEL, level + PINNED_LEVELS) : level;
  return most === WHOLE_LEVEL ? whole : atLevel(whole, most);
}

/** A list item, a line or a sentence of a text, with the text between it and the next one. */
interface Piece {
  text: string;
  gap: string;
  isItem: boolean;
}

const ITEM = /^\s*(?:[-*+•|]|\d{1,3}[.)]|[a-z]\))\s*\S/;
/** A line with more characters and without a list mark is divided into sentences. */
const LONG_LINE = 240;
/** Maximum pieces. Of a text with more, only pieces at its two ends are shown. */
const MOST_PIECES = 400;

/** Maximum characters of a piece by level, ascending. */
const CAPS = Array.from({ length: 70 }, (_, step) => Math.round(40 * 1.12 ** step));

/** The lowest level. Each level shortens a text less than the one before; level `CAPS.length` is the whole text. */
export const LEAST_LEVEL = 0;
export const WHOLE_LEVEL = CAPS.length;

/**
 * A text whose pieces are each cut to the level's length, so that no item of a list is lost. Higher levels show more of each
 * piece. Pasted output is reduced to its first lines and its errors at all levels below the whole.
 */
function atLevel(text: string, level: number): string {
  const most = CAPS[level];
  if (most === undefined || text.length <= most) return text;
  const pieces = withoutOutput(piecesOf(text));
  const joined = pieces.map((piece) => cutPiece(piece.text, most * weightOf(piece)) + piece.gap).join('');
  const short = onOneLine(joined.trimEnd());
  return short.length < text.length ? short : text;
}

/** A form with at most this many characters is put on one line, so that it needs no fence. */
const ONE_LINE_CHARS = 600;

function onOneLine(text: string): string {
  return text.length > ONE_LINE_CHARS
    ? text
    : text
        .split(LINE_END)
        .map((line) => line.trim())
        .filter((line) => line !== '')
        .join(JOINT);
}

const OUTPUT =
  /^\s*(?:at |[│┃╭╰➜$%❯]|[\]})]|\d+\s?[|│:])|[{};,]\s*$|:\d+:\d+|^\s*[\w'"-]+: .*,$|^[+-]\s?\d* |^\s{2,}[^\s*•-]/;
const MOST_OUTPUT = 2;

function withoutOutput(pieces: readonly Piece[]): Piece[] {
  let run = 0;
  return pieces.flatMap((piece) => {
    if (piece.isItem || !OUTPUT.test(piece.text)) {
      run = 0;
      return [piece];
    }
    run += 1;
    if (run <= MOST_OUTPUT || errorLines(piece.text).length > 0) return [piece];
    return run === MOST_OUTPUT + 1 ? [{ ...piece, text: LEFT_OUT }] : [];
  });
}

/**
 * The most important pieces within `maxTokens`: the first and the last, goals and demands, items of lists, then the others,
 * shown in their order. Null if not even the first fits. More tokens never show less.
 */
function mostImportant(text: string, maxTokens: number, count: Count): string | null {
  const pieces = piecesOf(text);
  const least = CAPS[LEAST_LEVEL] ?? 0;
  const order = pieces
    .map((piece, at) => ({ at, rank: rankOf(piece, at, pieces.length) }))
    .toSorted((a, b) => a.rank - b.rank || a.at - b.at);
  const kept = new Set<number>();
  let left = maxTokens;
  for (const { at } of order) {
    const cost = count(cutPiece(pieces[at]?.text ?? '', least)) + GAP_TOKENS;
    if (cost > left) break;
    left -= cost;
    kept.add(at);
  }
  if (kept.size === 0) return null;
  const shown: string[] = [];
  for (const [at, piece] of pieces.entries()) {
    if (kept.has(at)) shown.push(cutPiece(piece.text, least));
    else if (shown.at(-1) !== LEFT_OUT) shown.push(LEFT_OUT);
  }
  return onOneLine(shown.join('\n'));
}

/** Factor of the length of a piece: goals and demands keep more. */
function weightOf({ text }: Piece): number {
  return isGoalOrDemand(text) ? 6 : 1;
}

const LEFT_OUT = '…';
const GAP_TOKENS = 3;

function rankOf({ text, isItem }: Piece, at: number, length: number): number {
  if (at === 0) return 0;
  if (GOAL.test(text)) return 1;
  if (isGoalOrDemand(text)) return 2;
  if (isItem) return 3;
  if (OUTPUT.test(text)) return 5;
  return at === length - 1 ? 3 : 4;
}

function piecesOf(text: string): Piece[] {
  const lines = text.trim().split('\n');
  const shown =
    lines.length <= MOST_PIECES
      ? lines
      : [...lines.slice(0, MOST_PIECES / 2), ...lines.slice(-MOST_PIECES / 2)];
  const pieces = shown.flatMap((line): Piece[] => {
    if (line.trim() === '') return [];
    const isItem = ITEM.test(line);
    if (isItem || line.length <= LONG_LINE) return [{ text: line.trimEnd(), gap: '\n', isItem }];
    const sentences = sentencesOf(line);
    return sentences.map((sentence, at) => ({
      text: sentence,
      gap: at === sentences.length - 1 ? '\n' : ' ',
      isItem: false,
    }));
  });
  const half = MOST_PIECES / 2;
  return pieces.length <= MOST_PIECES ? pieces : [...pieces.slice(0, half), ...pieces.slice(-half)];
}

const HEAD_SHARE = 0.7;
const LONGEST_WORD = 16;

/** Drops the end of a text from its last space on, if that is near. */
function withoutLastWord(text: string): string {
  const end = text.slice(-LONGEST_WORD - 1);
  const space = end.search(/\s\S*$/);
  return space === -1 ? text : text.slice(0, text.length - end.length + space).trimEnd();
}

/** Beginning and end of a piece, cut between words where possible. */
function cutPiece(text: string, most: number): string {
  // Cutting only a few words would save nothing, because the sign for the omission also costs tokens.
  if (text.length <= most * 1.35) return text;
  const head = withoutLastWord(whole(text.slice(0, Math.floor(most * HEAD_SHARE))));
  const tail = whole(text.slice(text.length - Math.floor(most * (1 - HEAD_SHARE)))).replace(
    /^\S{0,16}\s+/,
    '',
  );
  return `${head} … ${tail}`;
}
