import type { CompactionReason } from '../../events/index.ts';
import { MAX_REQUEST_BYTES } from '../budget/windows.ts';
import type { View } from '../view/view.ts';

/**
 * When and how far a view is compacted. Tokens are as counted; shares refer to the window minus the reserved answer.
 */
export interface CompactionPolicy {
  /** Share at which compaction begins. */
  trigger: number;
  /** Share that a compaction aims at, and the same after a provider refused a request as too long. */
  target: number;
  /** Share of the window to come down to after a refusal, 0 to 1. */
  targetAfterOverflow: number;
  /**
   * A compaction that leaves more than this share of the room for the history made no progress. That room is what the
   * baseline leaves below the trigger. After three in a row, no other is made for a prompt that fits without one.
   */
  progress: number;
  /** Least share of the room that a rewrite must gain if the request fits without it: a rewrite costs the cache. */
  leastGain: number;
  /** Least tokens kept verbatim at the end of the history. More stay as far as the target allows. */
  keepTokens: number;
  /** Most tokens of people's words kept verbatim in a compaction. */
  quoteTokens: number;
  /** Most tokens of a model's summary. */
  summaryTokens: number;
  /** A summary request fails after this long without output, ms. While words arrive there is no limit. */
  summaryIdleMs: number;
  /** Whether outputs of tools may become placeholders. */
  prune: {
    /** The results of this many newest turns are never pruned. */
    turns: number;
    /** Newest results that are never pruned, and the least gain of a prune, in tokens. */
    protectTokens: number;
    minGain: number;
    /**
     * Whether each turn begins with a prune, although there is room: every request after it is shorter, and the first is
     * read from the cache only as far as the oldest removed result.
     */
    eachTurn: boolean;
    /** Tools whose results are never pruned. */
    exempt: readonly string[];
  };
  /** After this long without a turn the cache has expired, ms: a compaction then costs nothing extra. */
  coldMs: number;
}

export const DEFAULT_POLICY: CompactionPolicy = {
  trigger: 0.8,
  target: 0.55,
  targetAfterOverflow: 0.4,
  progress: 0.7,
  leastGain: 0.2,
  keepTokens: 20_000,
  quoteTokens: 20_000,
  summaryTokens: 6_000,
  summaryIdleMs: 90_000,
  prune: {
    turns: 2,
    protectTokens: 40_000,
    minGain: 20_000,
    eachTurn: false,
    exempt: ['handoff', 'delegate', 'ask'],
  },
  coldMs: 300_000,
};

/** The policy for a window: token limits meant for large windows become shares of small ones. */
export function scaledPolicy(policy: CompactionPolicy, available: number): CompactionPolicy {
  const most = (tokens: number, share: number) => Math.min(tokens, Math.floor(available * share));
  const { prune } = policy;
  return {
    ...policy,
    keepTokens: most(policy.keepTokens, 0.35),
    quoteTokens: most(policy.quoteTokens, 0.15),
    summaryTokens: most(policy.summaryTokens, 0.1),
    prune: {
      ...prune,
      protectTokens: most(prune.protectTokens, 0.3),
      minGain: most(prune.minGain, 0.15),
    },
  };
}

/** Limits of a prompt, in counted tokens. */
export interface Room {
  /** The window minus the reserved answer. */
  available: number;
  trigger: number;
  /** Size that a compaction aims at. */
  target: number;
  /** The baseline: in every prompt, never shortened. */
  fixed: number;
}

/** Share of the present history that a compaction at a person's request aims at. */
const MANUAL_SHARE = 0.5;
/** The least shares of the room beside the baseline, so that a large baseline leaves a history that can be reached. */
const LEAST_TRIGGER = 0.5;
const LEAST_TARGET = 0.25;

/**
 * `ratio` is the provider's count per counted token, as far as is known; `history` the counted tokens
 * of the view, which only a person's request depends on.
 */
export function roomOf(
  {
    available,
    fixed,
    ratio,
    reason,
    history = 0,
  }: { available: number; fixed: number; ratio: number; reason: CompactionReason; history?: number },
  policy: CompactionPolicy,
): Room {
  const counted = Math.floor(available / Math.max(0.1, ratio));
  const aim = reason === 'overflow' ? policy.targetAfterOverflow : policy.target;
  const least = (share: number) => fixed + Math.max(0, counted - fixed) * share;
  const joined = fixed + (policy.keepTokens + policy.summaryTokens + policy.quoteTokens) * 1.2;
  return {
    available: counted,
    trigger: Math.floor(Math.max(counted * policy.trigger, least(LEAST_TRIGGER))),
    target: Math.floor(
      wished(reason, Math.max(counted * aim, least(LEAST_TARGET)), {
        joined,
        half: fixed + history * MANUAL_SHARE,
      }),
    ),
    fixed,
  };
}

function wished(
  reason: CompactionReason,
  aim: number,
  { joined, half }: { joined: number; half: number },
): number {
  switch (reason) {
    case 'join':
      return Math.min(joined, aim);
    case 'manual':
      return Math.min(half, aim);
    case 'over_budget':
    case 'overflow':
    case 'cold_cache':
    case 'each_turn':
      return aim;
  }
}

export function sizeIn(view: View, { fixed }: Room): number {
  return fixed + view.tokens;
}

/** The size below which a compaction made progress. */
export function progressLimit({ trigger, fixed }: Room, { progress }: CompactionPolicy): number {
  return fixed + Math.max(0, trigger - fixed) * progress;
}

export function isWithin(view: View, room: Room, limit: number): boolean {
  return sizeIn(view, room) <= limit && view.bytes <= MAX_REQUEST_BYTES;
}
