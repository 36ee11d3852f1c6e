import * as z from 'zod';
import { DEFAULT_POLICY, type CompactionPolicy } from '../context/index.ts';
import { AgentId } from '../events/index.ts';
import { EmbedderSettings } from '../providers/settings.ts';

const Share = z.number().min(0.1).max(0.95);
const Tokens = z.int().nonnegative();

/** The `context` block of a definition. Token settings apply to windows of at least 128k; smaller windows scale them down. */
export const ContextSettings = z.strictObject({
  /** Used share of the window at which a compaction runs, 0.1 to 0.95. Default 0.8. */
  trigger: Share.optional(),
  /** Share of the window that a compaction aims at, 0.1 to 0.95. Default 0.55. */
  target: Share.optional(),
  /** Newest tokens that stay verbatim after a summary. Default 20,000. */
  keepTokens: Tokens.optional(),
  /** Tokens of people's messages quoted in a summary. Default 20,000. */
  quoteTokens: Tokens.optional(),
  /** Longest summary, tokens. Default 6,000. */
  summaryTokens: Tokens.optional(),
  /** Longest silence of a model that writes a summary, ms; then the summary fails. Its total time is not limited. Default 90 s. */
  summaryIdleMs: z.int().min(1_000).max(3_600_000).optional(),
  /** Tokens of the newest tool outputs, which are never pruned. Default 40,000. */
  protectTokens: Tokens.optional(),
  /** Least tokens that pruning must gain. Default 20,000. */
  minGain: Tokens.optional(),
  /** Newest turns whose tool outputs are never pruned. Default 2. */
  protectTurns: z.int().min(0).max(1_000).optional(),
  /** Whether each turn begins by pruning old tool outputs, although there is room. Default: only when room is needed. */
  pruneEachTurn: z.boolean().optional(),
  /** Names of tools whose outputs are never pruned. */
  exemptTools: z.array(z.string()).optional(),
  /** Time without a turn after which a provider's cache counts as cold, ms. Default 5 min. */
  coldMs: z.int().nonnegative().optional(),
  /** Whether a model writes summaries, or they are extracted from the log without a model. Default `model`. */
  summaries: z.enum(['model', 'extract']).default('model'),
  /** Id of the agent whose model writes all summaries. Default: each agent's own model. */
  summariser: AgentId.optional(),
  /** Retrieval of summarised events for a turn. Default: on, at most 2,000 tokens and 12 events. */
  retrieval: z
    .strictObject({
      enabled: z.boolean().optional(),
      tokens: Tokens.optional(),
      limit: z.int().min(1).max(100).optional(),
    })
    .optional(),
  /** Whether a session that its provider compacted is continued, or replaced by a new one. Default `keep`. */
  compactedSessions: z.enum(['keep', 'rebuild']).optional(),
  /** Retrieves memories also by meaning. Default: by their words only. */
  embedder: EmbedderSettings.optional(),
});
export type ContextSettings = z.infer<typeof ContextSettings>;

/** Null: retrieval is off. */
export function retrievalOf({ retrieval }: ContextSettings): { tokens: number; limit: number } | null {
  const { enabled = true, tokens = 2_000, limit = 12 } = retrieval ?? {};
  return enabled ? { tokens, limit } : null;
}

export function policyOf(settings: ContextSettings): CompactionPolicy {
  const { prune } = DEFAULT_POLICY;
  const {
    trigger = DEFAULT_POLICY.trigger,
    target = Math.min(DEFAULT_POLICY.target, trigger * 0.7),
    keepTokens = DEFAULT_POLICY.keepTokens,
    quoteTokens = DEFAULT_POLICY.quoteTokens,
    summaryTokens = DEFAULT_POLICY.summaryTokens,
    summaryIdleMs = DEFAULT_POLICY.summaryIdleMs,
    protectTokens = prune.protectTokens,
    minGain = prune.minGain,
    protectTurns = prune.turns,
    pruneEachTurn = prune.eachTurn,
    exemptTools = [],
    coldMs = DEFAULT_POLICY.coldMs,
  } = settings;
  return {
    ...DEFAULT_POLICY,
    trigger,
    target,
    targetAfterOverflow: Math.min(DEFAULT_POLICY.targetAfterOverflow, target),
    keepTokens,
    quoteTokens,
    summaryTokens,
    summaryIdleMs,
    coldMs,
    prune: {
      turns: protectTurns,
      protectTokens,
      minGain,
      eachTurn: pruneEachTurn,
      exempt: [...prune.exempt, ...exemptTools],
    },
  };
}
