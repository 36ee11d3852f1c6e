import { atOnce, type Steps } from '../steps.ts';
import type { TranscriptOptions } from './render-transcript.ts';

/** What a model is asked for a summary with. */
export interface SummaryRequest {
  system: string;
  user: string;
}

export interface FittedRequest extends SummaryRequest {
  level: number;
  tokens: number;
}

/** A request at one level, with as many of its entries as it is told to show, newest last. */
export interface RequestDraft {
  entries: number;
  /** Of these the newest, if not all can fit: the others were not written. */
  written: number;
  show: (newest: number) => SummaryRequest;
}

/** Writes what a request is made of, until it has so many characters. */
export type DraftAt = (level: number, mostChars: number) => Steps<RequestDraft>;

type LevelOptions = Pick<TranscriptOptions, 'resultChars' | 'calls' | 'tails'> & { messageChars: number };

/** How a request is made smaller, level by level; at the last one the oldest entries are left out as well. */
const HEADS: LevelOptions = { calls: false, messageChars: 500, tails: false };
const LEVELS: readonly LevelOptions[] = [
  { resultChars: 2_000, messageChars: 8_000 },
  { resultChars: 500, messageChars: 4_000 },
  { resultChars: 0, messageChars: 4_000 },
  HEADS,
  HEADS,
];
const LAST_LEVEL = LEVELS.length - 1;

/** Entries that the last level shows where nobody has tried how many fit. */
const NEWEST_ENTRIES = 40;

export function levelOptions(level: number): LevelOptions {
  return LEVELS[level] ?? HEADS;
}

export function requestAt(level: number, draftAt: DraftAt): SummaryRequest {
  const { entries, show } = atOnce(draftAt(level, Infinity));
  return show(level < LAST_LEVEL ? entries : NEWEST_ENTRIES);
}

/** The line that stands for the entries that are not shown. */
export function leftOut(entries: number): string[] {
  return entries <= 0 ? [] : [`[the oldest ${entries} entries are left out here for length]`];
}

export interface Fit {
  maxTokens: number;
  count: (text: string) => number;
}

/** Far above what text has for a token: what is longer need not be counted to be found too long. */
const CHARACTERS_PER_TOKEN = 16;

/** The first level that fits; at the last one as many of the newest entries as fit. Null where not even one does. */
export function* fitSteps(draftAt: DraftAt, { maxTokens, count }: Fit): Steps<FittedRequest | null> {
  const mostChars = Math.max(0, maxTokens) * CHARACTERS_PER_TOKEN;
  const tryAt = (level: number, draft: RequestDraft, newest: number): FittedRequest | null => {
    const { system, user } = draft.show(newest);
    if (system.length + user.length > mostChars) return null;
    const tokens = count(system) + count(user);
    return tokens <= maxTokens ? { system, user, level, tokens } : null;
  };
  for (let level = 0; level < LAST_LEVEL; level += 1) {
    const draft = yield* draftAt(level, mostChars);
    const fitted = draft.written < draft.entries ? null : tryAt(level, draft, draft.entries);
    if (fitted) return fitted;
  }
  const draft = yield* draftAt(LAST_LEVEL, mostChars);
  let best: FittedRequest | null = null;
  let fits = 0;
  let tooMany = draft.written + 1;
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    const fitted = tryAt(LAST_LEVEL, draft, middle);
    best = fitted ?? best;
    if (fitted) fits = middle;
    else tooMany = middle;
    yield mostChars;
  }
  return best;
}
