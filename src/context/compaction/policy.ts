import type { CompactionReason } from '../../events/index.ts';
import { MAX_REQUEST_BYTES } from '../budget/windows.ts';
import type { View } from '../view/view.ts';

/**
 * When and how far a view is compacted. Tokens are Troupe's count. Shares are of the window minus the reserved answer.
 */
export interface CompactionPolicy {
  /** Share at which compaction begins, 0 to 1. */
  trigger: number;
  /** Share that a compaction aims at, 0 to 1. */
  target: number;
  /** Share that a compaction aims at after a provider refused a request as too long, 0 to 1. */
  targetAfterOverflow: number;
  /**
   * A compaction that leaves more than this share of the room for the history made no progress. That room is what the
   * baseline leaves below the trigger. After three such compactions in a row, a prompt that fits is not compacted again.
   */
  progress: number;
  /** Minimum share that a compaction must gain if the request fits without it, because it invalidates the cache. */
  leastGain: number;
  /** Minimum tokens kept verbatim at the end of the history. More are kept as far as the target allows. */
  keepTokens: number;
  /** Maximum tokens of people's words kept verbatim in a compaction. */
  quoteTokens: number;
  /** Maximum tokens of a model's summary. */
  summaryTokens: number;
  /** A summary request fails after this time without output, ms. There is no limit while output arrives. */
  summaryIdleMs: number;
  /** Whether outputs of tools may become placeholders. */
  prune: {
    /** Number of newest turns whose results are never pruned. */
    turns: number;
    /** Tokens of the newest results that are never pruned, and the minimum gain of a prune in tokens. */
    protectTokens: number;
    minGain: number;
    /**
     * Whether each turn begins with a prune even if there is room. Later requests are then shorter, but of the first one the
     * cache has only the part before the oldest removed result.
     */
    eachTurn: boolean;
    /** Names of tools whose results are never pruned. */
    exempt: readonly string[];
  };
  /** After this time without a turn, ms, the cache has expired, so a compaction costs nothing extra. */
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

/** The policy for a window. In small windows, token limits that are meant for large ones become shares. */
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
  /** Tokens that a compaction aims at. */
  target: number;
  /** Tokens of the baseline, which every prompt contains and no compaction shortens. */
  fixed: number;
}

/** Share of the present history that a compaction requested by a person aims at. */
const MANUAL_SHARE = 0.5;
/** Minimum shares of the room beside the baseline, so that with a large baseline the limits can still be reached. */
const LEAST_TRIGGER = 0.5;
const LEAST_TARGET = 0.25;

/**
 * Limits of a prompt. `ratio`: the provider's tokens per counted token, if known. `history`: counted tokens of the view, used
 * only if a person requested the compaction.
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

/** A compaction that leaves fewer tokens than this made progress. */
export function progressLimit({ trigger, fixed }: Room, { progress }: CompactionPolicy): number {
  return fixed + Math.max(0, trigger - fixed) * progress;
}

export function isWithin(view: View, room: Room, limit: number): boolean {
  return sizeIn(view, room) <= limit && view.bytes <= MAX_REQUEST_BYTES;
}
