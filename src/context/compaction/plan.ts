import type { Adoption, CompactionBody, EventId, TurnId } from '../../events/index.ts';
import { adoptCompaction } from './apply.ts';
import { forkView, type View } from '../view.ts';

export interface SharedCompaction {
  id: EventId;
  body: CompactionBody;
}

/**
 * Changes to a view, gathered over the strategies and applied at once: two changes for one request would cost the
 * cache twice.
 */
export interface CompactionPlan {
  /** `upTo`: the last event that it replaces in this view. Newer events that it covers too stay as they are. */
  compaction: (SharedCompaction & { upTo: number }) | null;
  pruned: readonly EventId[];
  /** Turns whose retrieved memories are removed. */
  forgotten: readonly TurnId[];
  /** The early steps of the running turn, as text. */
  turn: { id: TurnId; steps: number; text: string } | null;
  trimmed: readonly { event: EventId; text: string }[];
}

export const NO_PLAN: CompactionPlan = {
  compaction: null,
  pruned: [],
  forgotten: [],
  turn: null,
  trimmed: [],
};

export function isEmptyPlan({ compaction, pruned, forgotten, turn, trimmed }: CompactionPlan): boolean {
  return !compaction && !turn && pruned.length + forgotten.length + trimmed.length === 0;
}

/** A prune needs no new epoch; everything else does. */
export function isPruneOnly({ compaction, turn, trimmed }: CompactionPlan): boolean {
  return !compaction && !turn && trimmed.length === 0;
}

export function adoptionOf(plan: CompactionPlan, rest: Pick<Adoption, 'reason' | 'tokens'>): Adoption {
  const { compaction, pruned, forgotten, turn, trimmed } = plan;
  return {
    compaction: compaction?.id ?? null,
    upTo: compaction?.upTo ?? 0,
    ...(turn && { turn }),
    ...(trimmed.length > 0 && { trimmed: [...trimmed] }),
    ...(pruned.length > 0 && { pruned: [...pruned] }),
    ...(forgotten.length > 0 && { forgotten: [...forgotten] }),
    ...rest,
  };
}

const TENTATIVE = 'tentative' as EventId;

/** The view with the plan applied. The original is not touched. */
export function withPlan(view: View, plan: CompactionPlan): View {
  const fork = forkView(view);
  if (plan.compaction) fork.compactions.set(plan.compaction.id, plan.compaction.body);
  const tokens = { before: 0, after: 0, trigger: 0 };
  adoptCompaction(fork, TENTATIVE, adoptionOf(plan, { reason: 'over_budget', tokens }), { hashes: false });
  return fork;
}

/** The plan without prunes of what it covers anyway. */
export function presentIn(view: View, plan: CompactionPlan): CompactionPlan {
  const left = new Set(withPlan(view, { ...plan, pruned: [] }).slots.map(({ event }) => event));
  return { ...plan, pruned: [...new Set(plan.pruned)].filter((event) => left.has(event)) };
}

/** The newest shared compaction known to the view. */
export function latestCompaction(view: View): SharedCompaction | null {
  const [id, body] = [...view.compactions].at(-1) ?? [];
  return id !== undefined && body !== undefined ? { id, body } : null;
}
