import * as z from 'zod';
import { DEFAULT_POLICY, type CompactionPolicy } from '../context/index.ts';
import { AgentId } from '../events/index.ts';
import { EmbedderSettings } from '../providers/settings.ts';

const Share = z.number().min(0.1).max(0.95);
const Tokens = z.int().nonnegative();

/** The `context` block of a definition. Tokens are for windows of 128k and more; in smaller ones they shrink with it. */
export const ContextSettings = z.strictObject({
  /** Share of the room at which it is made, default 0.8, and that a compaction aims at, default 0.55. */
  trigger: Share.optional(),
  target: Share.optional(),
  /** What stays verbatim behind a summary, default 20,000; of people's words in it, default 20,000; and its own length, default 6,000. */
  keepTokens: Tokens.optional(),
  quoteTokens: Tokens.optional(),
  summaryTokens: Tokens.optional(),
  /** A model that says nothing for so long writes no summary, ms. Default 90 s; while words arrive it may take its time. */
  summaryIdleMs: z.int().min(1_000).max(3_600_000).optional(),
  /** Newest tool outputs that are never removed, default 40,000; and what a removal must gain, default 20,000. */
  protectTokens: Tokens.optional(),
  minGain: Tokens.optional(),
  /** Tools whose outputs are never removed. */
  exemptTools: z.array(z.string()).optional(),
  /** After so long without a turn a provider's cache is taken for cold, ms. Default 5 min. */
  coldMs: z.int().nonnegative().optional(),
  /** Who writes summaries: each agent's own model (default), that of one agent, or no model. */
  summaries: z.enum(['model', 'extract']).default('model'),
  summariser: AgentId.optional(),
  /** What of the summarised past is found again for a turn: by default at most 2,000 tokens and 12 events. */
  retrieval: z
    .strictObject({
      enabled: z.boolean().optional(),
      tokens: Tokens.optional(),
      limit: z.int().min(1).max(100).optional(),
    })
    .optional(),
  /** A session that its provider has shortened by itself goes on (default), or a new one is begun. */
  compactedSessions: z.enum(['keep', 'rebuild']).optional(),
  /** Finds memories by their meaning too; without it by their words alone. */
  embedder: EmbedderSettings.optional(),
});
export type ContextSettings = z.infer<typeof ContextSettings>;

/** Null: nothing is found again. */
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
    prune: { ...prune, protectTokens, minGain, exempt: [...prune.exempt, ...exemptTools] },
  };
}
