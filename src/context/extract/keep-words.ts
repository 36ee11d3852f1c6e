import type { Steps } from '../steps.ts';
import type { Candidate } from './candidates.ts';
import { isChatter } from './goals.ts';
import type { Kept, Pricing } from './pricing.ts';
import { LEAST_LEVEL, WHOLE_LEVEL } from './shorten-words.ts';

/**
 * People's words within a share. All of them whole, if they fit. Otherwise mere acknowledgements leave; then the others
 * are shortened piece by piece, all to the same length of a piece; and only if even their shortest forms do not fit, the
 * least important messages leave, pinned ones last. More room never shows less: the order of messages, the lengths and
 * the groups do not depend on the share.
 */
export function* keepWords(people: readonly Candidate[], share: number, pricing: Pricing): Steps<Kept[]> {
  const whole = yield* allAt(people, WHOLE_LEVEL, share, pricing);
  if (whole) return whole;
  const ranked = people.filter(isWorthKeeping).toSorted(byImportance);
  const large: Candidate[] = [];
  const others: Candidate[] = [];
  for (const candidate of ranked) {
    const isLarge = pricing.roughly(candidate, LEAST_LEVEL) > LARGE_TOKENS;
    (isLarge ? large : others).push(candidate);
    yield pricing.work();
  }
  const forLarge = yield* neededFor(large, Math.floor(share * LARGE_SHARE), pricing);
  return [
    ...(yield* shortened(large, forLarge, pricing)),
    ...(yield* shortened(others, share - forLarge, pricing)),
  ];
}

/** Messages that are long even when each of their lines is short, as pasted logs are, share a part of their own. */
const LARGE_TOKENS = 400;
const LARGE_SHARE = 0.3;

/** Tokens of all of them whole, or `most` if these are more. */
export function* neededFor(candidates: readonly Candidate[], most: number, pricing: Pricing): Steps<number> {
  let needed = 0;
  for (const candidate of candidates) {
    needed += pricing.at(candidate, WHOLE_LEVEL).tokens;
    yield pricing.work();
    if (needed >= most) break;
  }
  return Math.min(needed, most);
}

function* shortened(ranked: readonly Candidate[], share: number, pricing: Pricing): Steps<Kept[]> {
  const shortest = yield* mostThatFit(ranked, share, pricing);
  if (!shortest.isAll) return shortest.kept;
  let best = shortest.kept;
  let [fits, tooMuch] = [LEAST_LEVEL, WHOLE_LEVEL + 1];
  while (tooMuch - fits > 1) {
    const middle = Math.floor((fits + tooMuch) / 2);
    const forms = yield* allAt(ranked, middle, share, pricing);
    if (forms) [best, fits] = [forms, middle];
    else tooMuch = middle;
  }
  return best;
}

function isWorthKeeping(candidate: Candidate): boolean {
  return candidate.pinned !== undefined || !isChatter(candidate.whole);
}

function byImportance(a: Candidate, b: Candidate): number {
  return rankOf(b) - rankOf(a) || b.seq - a.seq;
}

/** The first request, then goals, then by score. */
function rankOf({ pinned, scored }: Candidate): number {
  if (pinned === 'request') return Infinity;
  return pinned === 'goal' ? Number.MAX_SAFE_INTEGER : scored.score;
}

/** In their order, until one does not fit: its most important parts take the rest. */
function* mostThatFit(
  ranked: readonly Candidate[],
  share: number,
  pricing: Pricing,
): Steps<{ kept: Kept[]; isAll: boolean }> {
  const kept: Kept[] = [];
  let left = share;
  for (const candidate of ranked) {
    const form = pricing.at(candidate, LEAST_LEVEL);
    yield pricing.work();
    if (form.tokens > left) {
      const part = pricing.within(candidate, left);
      return { kept: part ? [...kept, part] : kept, isAll: false };
    }
    left -= form.tokens;
    kept.push(form);
  }
  return { kept, isAll: true };
}

/** Null if they exceed the share; counting stops there. */
export function* allAt(
  candidates: readonly Candidate[],
  level: number,
  share: number,
  pricing: Pricing,
): Steps<Kept[] | null> {
  const kept: Kept[] = [];
  let left = share;
  for (const candidate of candidates) {
    const form = pricing.at(candidate, level);
    yield form.text.length + pricing.work();
    left -= form.tokens;
    if (left < 0) return null;
    kept.push(form);
  }
  return kept;
}
