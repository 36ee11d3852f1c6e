import * as z from 'zod';
import { DEFAULT_POLICY, type CompactionPolicy } from '../../context/index.ts';
import { AgentId } from '../../events/index.ts';
import { EmbedderSettings } from '../../providers/settings.ts';

const Share = z.number().min(0.1).max(0.95);

export const ContextSettings = z.strictObject({
  /** Used share of the window at which compaction starts, 0.1 to 0.95. Default 0.8. */
  trigger: Share.optional(),
  /**
   * Whether older events are compacted when the window fills. False: an agent is sent everything, and a turn that no
   * longer fits fails with `context_overflow`. Default true.
   */
  compaction: z.boolean().optional(),
  /** Whether each turn begins by removing the tool outputs of earlier turns. Default: they are pruned when room is needed. */
  pruneEachTurn: z.boolean().optional(),
  /** Whether a model writes summaries, or they are extracted from the log without a model. Default `model`. */
  summaries: z.enum(['model', 'extract']).default('model'),
  /** Id of the agent whose model writes all summaries. Default: each agent's own model. */
  summariser: AgentId.optional(),
  /** Whether summarised events are looked up for a turn. Default true. */
  retrieval: z.boolean().default(true),
  /** Retrieves memories also by meaning. Default: by their words only. */
  embedder: EmbedderSettings.optional(),
});
export type ContextSettings = z.infer<typeof ContextSettings>;

/** The most that is retrieved for a turn, in tokens and in events. */
const RETRIEVAL = { tokens: 2_000, limit: 12 };

/** Null: retrieval is off. */
export function retrievalOf({ retrieval }: ContextSettings): { tokens: number; limit: number } | null {
  return retrieval ? RETRIEVAL : null;
}

/** Fields of a policy that no definition sets. A test may set them. */
export type PolicyConstants = Partial<Omit<CompactionPolicy, 'prune'>> & {
  /** Fields of the pruning. */
  prune?: Partial<CompactionPolicy['prune']>;
};

export function policyOf(settings: ContextSettings, constants: PolicyConstants = {}): CompactionPolicy {
  const { trigger = DEFAULT_POLICY.trigger, pruneEachTurn = false } = settings;
  const target = Math.min(DEFAULT_POLICY.target, trigger * 0.7);
  const prune = { ...DEFAULT_POLICY.prune, ...(pruneEachTurn && PRUNE_EACH_TURN) };
  return {
    ...DEFAULT_POLICY,
    trigger,
    target,
    targetAfterOverflow: Math.min(DEFAULT_POLICY.targetAfterOverflow, target),
    ...constants,
    prune: { ...prune, ...constants.prune },
  };
}

/** An agent sees the outputs of its running turn only. */
const PRUNE_EACH_TURN = { eachTurn: true, turns: 0, protectTokens: 0, minGain: 0 };
