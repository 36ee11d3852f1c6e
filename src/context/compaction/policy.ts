import type { CompactionReason } from '../../events/index.ts';
import { MAX_REQUEST_BYTES } from '../budget/token-budget.ts';
import type { View } from '../view.ts';

/** When and how far a view is relieved. Tokens are as counted; `share` means of what the window leaves for the prompt. */
export interface CompactionPolicy {
  /** Share at which relief begins. */
  trigger: number;
  /** Share that a compaction aims at, and the same after a provider has refused a request as too long. */
  target: number;
  targetAfterOverflow: number;
  /** A compaction that leaves more than this share of the trigger has made no progress; three in a row stop it. */
  progress: number;
  /** What stays verbatim at the end of the history, at most. */
  keepTokens: number;
  /** People's words kept verbatim in a compaction, at most. */
  quoteTokens: number;
  /** What a model's summary may have, at most. */
  summaryTokens: number;
  /** A model that says nothing for so long writes no summary, ms. While words arrive it may take its time. */
  summaryIdleMs: number;
  prune: {
    /** Newest turns whose results are left alone. */
    turns: number;
    /** Newest results that are left alone, and what a prune must gain at least. */
    protectTokens: number;
    minGain: number;
    /** Tools whose results stay. */
    exempt: readonly string[];
  };
  /** After so long without a turn a cache has gone cold, ms: a rewrite then costs nothing extra. */
  coldMs: number;
}

export const DEFAULT_POLICY: CompactionPolicy = {
  trigger: 0.8,
  target: 0.55,
  targetAfterOverflow: 0.4,
  progress: 0.7,
  keepTokens: 20_000,
  quoteTokens: 20_000,
  summaryTokens: 6_000,
  summaryIdleMs: 90_000,
  prune: {
    turns: 2,
    protectTokens: 40_000,
    minGain: 20_000,
    exempt: ['handoff', 'delegate', 'ask'],
  },
  coldMs: 300_000,
};

/** The policy for a window: what is given in tokens for large windows is a share of small ones. */
export function scaledPolicy(policy: CompactionPolicy, available: number): CompactionPolicy {
  const most = (tokens: number, share: number) => Math.min(tokens, Math.floor(available * share));
  const { prune } = policy;
  return {
    ...policy,
    keepTokens: most(policy.keepTokens, 0.2),
    quoteTokens: most(policy.quoteTokens, 0.15),
    summaryTokens: most(policy.summaryTokens, 0.1),
    prune: {
      ...prune,
      protectTokens: most(prune.protectTokens, 0.3),
      minGain: most(prune.minGain, 0.15),
    },
  };
}

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
