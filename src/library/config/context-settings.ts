import * as z from 'zod';
import { DEFAULT_POLICY, type CompactionPolicy } from '../../context/index.ts';
import { AgentId } from '../../events/index.ts';
import { type EmbedderInput, EmbedderSettings } from '../../providers/settings.ts';

const Share = z.number().min(0.1).max(0.95);
const Tokens = z.int().nonnegative();

/** Retrieval of summarised events for a turn. */
export interface RetrievalInput {
  /** Whether summarised events are looked up. Default true. */
  enabled?: boolean | undefined;
  /** Most tokens of what was found in a prompt. Default 2,000. */
  tokens?: number | undefined;
  /** Most events, 1 to 100. Default 12. */
  limit?: number | undefined;
}

/**
 * The `context` block of a definition: sizes of prompts, and their compaction. Token settings apply to windows of at least
 * 128k; smaller windows scale them down.
 */
export interface ContextInput {
  /** Used share of the window at which a compaction runs, 0.1 to 0.95. Default 0.8. */
  trigger?: number | undefined;
  /** Share of the window that a compaction aims at, 0.1 to 0.95. Default 0.55. */
  target?: number | undefined;
  /** Newest tokens that stay verbatim after a summary. Default 20,000. */
  keepTokens?: number | undefined;
  /** Tokens of people's messages quoted in a summary. Default 20,000. */
  quoteTokens?: number | undefined;
  /** Longest summary, tokens. Default 6,000. */
  summaryTokens?: number | undefined;
  /**
   * Longest silence of a model that writes a summary, ms; then the summary fails. Growing reasoning is no silence, and the total
   * time has only the limits of `replyLimits`. Default 90,000.
   */
  summaryIdleMs?: number | undefined;
  /** Tokens of the newest tool outputs, which are never pruned. Default 40,000. */
  protectTokens?: number | undefined;
  /** Least tokens that pruning must gain. Default 20,000. */
  minGain?: number | undefined;
  /** Newest turns whose tool outputs are never pruned. Default 2. */
  protectTurns?: number | undefined;
  /** Whether each turn begins by pruning old tool outputs, although there is room. Default: only when room is needed. */
  pruneEachTurn?: boolean | undefined;
  /** Names of tools whose outputs are never pruned. Default: none besides handoffs and tasks. */
  exemptTools?: readonly string[] | undefined;
  /** Time without a turn after which a provider's cache counts as cold, ms. Default 300,000. */
  coldMs?: number | undefined;
  /** Whether a model writes summaries, or they are extracted from the log without a model. Default `model`. */
  summaries?: 'model' | 'extract' | undefined;
  /** Id of the agent whose model writes all summaries. Default: each agent's own model. */
  summariser?: string | undefined;
  /** Retrieval of summarised events for a turn. Default: on. */
  retrieval?: RetrievalInput | undefined;
  /** Whether a session that its provider compacted is continued, or replaced by a new one. Default `keep`. */
  compactedSessions?: 'keep' | 'rebuild' | undefined;
  /** Retrieves memories also by meaning. Default: by their words only. */
  embedder?: EmbedderInput | undefined;
}

export const ContextSettings = z.strictObject({
  trigger: Share.optional(),
  target: Share.optional(),
  keepTokens: Tokens.optional(),
  quoteTokens: Tokens.optional(),
  summaryTokens: Tokens.optional(),
  summaryIdleMs: z.int().min(1_000).max(3_600_000).optional(),
  protectTokens: Tokens.optional(),
  minGain: Tokens.optional(),
  protectTurns: z.int().min(0).max(1_000).optional(),
  pruneEachTurn: z.boolean().optional(),
  exemptTools: z.array(z.string()).optional(),
  coldMs: z.int().nonnegative().optional(),
  summaries: z.enum(['model', 'extract']).default('model'),
  summariser: AgentId.optional(),
  retrieval: z
    .strictObject({
      enabled: z.boolean().optional(),
      tokens: Tokens.optional(),
      limit: z.int().min(1).max(100).optional(),
    })
    .optional(),
  compactedSessions: z.enum(['keep', 'rebuild']).optional(),
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
