import { type Candidate, type Level, LEVELS } from './candidate.ts';
import type { Steps } from '../steps.ts';
import type { Kept, Pricing } from './pricing.ts';

/** Rounds that are kept when nothing else can be. */
const LAST_ROUNDS = 4;
/** Where not all fits, one message may be quoted whole only up to this part of the share. */
const WHOLE_PART = 1 / 8;

/**
 * What must be kept, within a share. The first rung that holds it all:
 *   all whole; previews of the long ones; what the long ones come to; then the newest, as many as fit;
 *   where those do not reach back over the last rounds, these alone, each cut to an equal part; at last one alone.
 * Every rung is tried once, so that no text can make this go on.
 */
export function* keepNewest(
  candidates: readonly Candidate[],
  share: number,
  pricing: Pricing,
): Steps<Kept[]> {
  const newest = candidates.toSorted((a, b) => b.seq - a.seq);
  for (const level of LEVELS) {
    const kept = yield* allAt(newest, level, share, pricing);
    if (kept) return kept;
  }
  const fitting = yield* fill(newest, share, pricing);
  const recent = newest.filter(({ round }) => round <= LAST_ROUNDS);
  if (fitting.length >= recent.length) return fitting;
  const part = Math.floor(share / recent.length);
  const pieces = recent.flatMap((candidate) => pricing.within(candidate, part) ?? []);
  if (pieces.length === recent.length) return pieces;
  return newest.slice(0, 1).flatMap((candidate) => pricing.within(candidate, share) ?? []);
}

/** Null where they are too many; counting stops there. */
export function* allAt(
  candidates: readonly Candidate[],
  level: Level,
  share: number,
  pricing: Pricing,
): Steps<Kept[] | null> {
  const kept: Kept[] = [];
  let left = share;
  for (const candidate of candidates) {
    const form = pricing.at(candidate, level);
    yield form.text.length;
    left -= form.tokens;
    if (left < 0) return null;
    kept.push(form);
  }
  return kept;
}

/** From the newest on, up to the first that does not fit: nothing older is kept instead of it. */
function* fill(newest: readonly Candidate[], share: number, pricing: Pricing): Steps<Kept[]> {
  const fitting: Kept[] = [];
  let left = share;
  for (const candidate of newest) {
    const forms = LEVELS.map((level) => pricing.at(candidate, level));
    yield forms[0]?.text.length ?? 0;
    const kept = forms.find(({ tokens }) => tokens <= share * WHOLE_PART) ?? forms.at(-1);
    if (!kept || kept.tokens > left) break;
    left -= kept.tokens;
    fitting.push(kept);
  }
  return fitting;
}
