import {
  adoptionOf,
  adoptStrategy,
  atOnce,
  extractCompaction,
  foldAhead,
  isEmptyPlan,
  isPruneOnly,
  isWorthwhile,
  latestCompaction,
  pairSafe,
  presentIn,
  proposeCut,
  pruneStrategy,
  type CompactionPolicy,
  type CompactionRun,
  type Room,
  startRun,
  takeCompaction,
  trimStrategy,
  type View,
} from '../../src/context/index.ts';
import { countTokens } from '../../src/context/budget/tokens.ts';
import {
  type AgentId,
  type BaselineBody,
  type Event,
  type EventDraft,
  type EventId,
  type CompactionReason,
  SYSTEM_AUTHOR,
} from '../../src/events/index.ts';

export interface Compacting {
  view: View;
  /** The whole log; compactions are appended to it through `append`. */
  log: readonly Event[];
  append: (draft: EventDraft) => Event;
  /** Output of the running turn so far; the compaction is pushed to it. */
  outputs: EventDraft[];
  policy: CompactionPolicy;
  room: Room;
  reason?: CompactionReason;
  baseline: BaselineBody;
}

/**
 * Compacts a view as the engine does when no model writes summaries. Returns the compaction, or null if nothing
 * needed one.
 */
export function compactView(given: Compacting): EventDraft | null {
  const { view, policy, room, outputs, reason = 'over_budget' } = given;
  const run = startRun(view, { reason, policy, room });
  runStrategies(run, given);
  if (isEmptyPlan(run.plan) || !isWorthwhile(run)) return null;
  const draft = compactionOf(run, given);
  outputs.push(draft);
  foldAhead(view, draft, countTokens);
  return draft;
}

function runStrategies(run: CompactionRun, given: Compacting): void {
  if (adoptStrategy(run) === 'fits' || (run.reason !== 'overflow' && pruneStrategy(run) === 'fits')) return;
  if (run.reason === 'cold_cache') return;
  for (let round = 0; round < 3; round++) {
    if (compact(run, given) || atOnce(trimStrategy(run, given.outputs, countTokens)) === 'fits') return;
  }
}

function compact(
  run: CompactionRun,
  { view, log, append, reason = 'over_budget', policy }: Compacting,
): boolean {
  const cut = proposeCut(run);
  if (!cut) return false;
  const previous = latestCompaction(view)?.body ?? null;
  const events = log.filter(({ seq }) => seq > (previous?.upTo ?? 0));
  const upTo = pairSafe(events, cut.upTo);
  if (upTo <= (previous?.upTo ?? 0)) return false;
  const number = (previous?.number ?? 0) + 1;
  const body = extractCompaction({
    number,
    upTo,
    reason,
    by: view.agent,
    before: cut.before,
    budget: cut.budget,
    events: events.filter(({ seq }) => seq <= upTo),
    previous,
    policy,
    secret: view.secret,
    people: view.people,
    count: countTokens,
  });
  if (!body) return false;
  const id = `compaction:${number}` as EventId;
  append({ id, author: SYSTEM_AUTHOR, to: [], kind: 'compaction', body });
  view.compactions.set(id, body);
  return takeCompaction(run, { id, body }, 'extraction') === 'fits';
}

function compactionOf(
  { view, plan, reason, before, after, room }: CompactionRun,
  { baseline, outputs }: Compacting,
): EventDraft {
  const kept = presentIn(view, plan);
  const tokens = { before, after, trigger: room.trigger };
  const turn = view.turn?.id;
  const author = { kind: 'agent' as const, id: view.agent, name: view.agent };
  const own = { author, to: [] as AgentId[], ...(turn !== undefined && { turn }) };
  const id = `${turn ?? view.agent}:relief:${outputs.length}.${view.cuts.length}` as EventId;
  if (isPruneOnly(kept)) {
    return {
      ...own,
      id,
      kind: 'prune',
      body: { events: [...kept.pruned], memories: [...kept.forgotten], reason, tokens },
    };
  }
  const epoch = (view.baseline?.body.epoch ?? 1) + 1;
  return {
    ...own,
    id,
    kind: 'baseline',
    body: { ...baseline, epoch, reason: 'compaction', adopts: adoptionOf(kept, { reason, tokens }) },
  };
}
