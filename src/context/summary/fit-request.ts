import { atOnce, type Steps } from '../steps.ts';
import type { TranscriptOptions } from './render-transcript.ts';

/** The request for a summary. */
export interface SummaryRequest {
  system: string;
  user: string;
}

export interface FittedRequest extends SummaryRequest {
  level: number;
  tokens: number;
}

/** A request at one level. `show` renders it with its newest entries, newest last. */
export interface RequestDraft {
  entries: number;
  /** Entries written, the newest ones. The others cannot fit. */
  written: number;
  show: (newest: number) => SummaryRequest;
}

/** Writes the parts of a request, up to `mostChars`. */
export type DraftAt = (level: number, mostChars: number) => Steps<RequestDraft>;

type LevelOptions = Pick<TranscriptOptions, 'resultChars' | 'calls' | 'tails'> & { messageChars: number };

/** Each level makes a request smaller. The last one also omits the oldest entries. */
const HEADS: LevelOptions = { calls: false, messageChars: 500, tails: false };
const LEVELS: readonly LevelOptions[] = [
  { resultChars: 2_000, messageChars: 8_000 },
  { resultChars: 500, messageChars: 4_000 },
  { resultChars: 0, messageChars: 4_000 },
  HEADS,
  HEADS,
];
const LAST_LEVEL = LEVELS.length - 1;

/** Entries shown at the last level when the number is not fitted. */
const NEWEST_ENTRIES = 40;

export function levelOptions(level: number): LevelOptions {
  return LEVELS[level] ?? HEADS;
}

export function requestAt(level: number, draftAt: DraftAt): SummaryRequest {
  const { entries, show } = atOnce(draftAt(level, Infinity));
  return show(level < LAST_LEVEL ? entries : NEWEST_ENTRIES);
}

/** The line that stands for omitted entries. */
export function leftOut(entries: number): string[] {
  return entries <= 0 ? [] : [`[the oldest ${entries} entries are left out here for length]`];
}

/** A draft around the newest blocks of a transcript. `write` gets them, and the line for the omitted ones. */
export function transcriptDraft(
  { blocks, entries }: { blocks: readonly string[]; entries: number },
  system: string,
  write: (shown: string, omitted: string[]) => string[],
): RequestDraft {
  return {
    entries,
    written: blocks.length,
    show: (newest) => {
      const shown = blocks.slice(Math.max(0, blocks.length - newest)).join('\n');
      return { system, user: write(shown, leftOut(Math.max(0, entries - newest))).join('\n\n') };
    },
  };
}

export interface Fit {
  maxTokens: number;
  count: (text: string) => number;
}

/** Far more than any text has per token: longer texts are too long without counting. */
const CHARACTERS_PER_TOKEN = 16;

/** The first level that fits. The last one shows as many of the newest entries as fit. Null if not even one does. */
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
