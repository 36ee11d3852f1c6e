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
  show: (newest: number) => SummaryRequest;
}

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

export function requestAt(level: number, { entries, show }: RequestDraft): SummaryRequest {
  return show(level < LAST_LEVEL ? entries : NEWEST_ENTRIES);
}

/** The line that stands for the entries that are not shown. */
export function leftOut(entries: number): string[] {
  return entries <= 0 ? [] : [`[the oldest ${entries} entries are left out here for length]`];
}

/** The first level that fits; at the last one as many of the newest entries as fit. Null where not even one does. */
export function fitRequest(
  draftAt: (level: number) => RequestDraft,
  { maxTokens, count }: { maxTokens: number; count: (text: string) => number },
): FittedRequest | null {
  const tryAt = (level: number, draft: RequestDraft, newest: number): FittedRequest | null => {
    const { system, user } = draft.show(newest);
    const tokens = count(system) + count(user);
    return tokens <= maxTokens ? { system, user, level, tokens } : null;
  };
  for (let level = 0; level < LAST_LEVEL; level += 1) {
    const draft = draftAt(level);
    const fitted = tryAt(level, draft, draft.entries);
    if (fitted) return fitted;
  }
  const draft = draftAt(LAST_LEVEL);
  let best: FittedRequest | null = null;
  let fits = 0;
  let tooMany = draft.entries + 1;
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    const fitted = tryAt(LAST_LEVEL, draft, middle);
    best = fitted ?? best;
    if (fitted) fits = middle;
    else tooMany = middle;
  }
  return best;
}
