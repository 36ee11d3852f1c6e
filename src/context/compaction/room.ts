import type { CompactionReason } from '../../events/index.ts';
import { MAX_REQUEST_BYTES } from '../budget/token-budget.ts';
import type { View } from '../view.ts';
import type { CompactionPolicy } from './policy.ts';

/** How much a prompt may have, in counted tokens. */
export interface Room {
  /** What the window leaves beside the answer. */
  available: number;
  trigger: number;
  /** What a compaction aims at. */
  target: number;
  /** Baseline: in every prompt, never cut. */
  fixed: number;
}

/** `ratio`: what the provider counts for a counted token, as far as is known. */
export function roomOf(
  {
    available,
    fixed,
    ratio,
    reason,
  }: { available: number; fixed: number; ratio: number; reason: CompactionReason },
  policy: CompactionPolicy,
): Room {
  const counted = Math.floor(available / Math.max(0.1, ratio));
  const aim = reason === 'overflow' ? policy.targetAfterOverflow : policy.target;
  const joined = fixed + (policy.keepTokens + policy.summaryTokens + policy.quoteTokens) * 1.2;
  return {
    available: counted,
    trigger: Math.floor(counted * policy.trigger),
    target: Math.floor(reason === 'join' ? Math.min(joined, counted * aim) : counted * aim),
    fixed,
  };
}

export function sizeIn(view: View, { fixed }: Room): number {
  return fixed + view.tokens;
}

export function isWithin(view: View, room: Room, limit: number): boolean {
  return sizeIn(view, room) <= limit && view.bytes <= MAX_REQUEST_BYTES;
}
