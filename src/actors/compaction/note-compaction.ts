import type { CompactionNote, EventKind } from '../../events/index.ts';
import type { Metrics } from '../../metrics.ts';
import { ownDraft } from '../turn/turn-run.ts';
import type { TurnCompaction } from './turn-compaction.ts';

type NoteKind = Extract<EventKind, `compaction.${string}`>;

/** Tells the log how relief goes, for people: no prompt depends on it. By fence, so that a retry tells its own. */
export async function noteCompaction(
  { run, reason, before, after, attempt }: TurnCompaction,
  kind: NoteKind,
  more: Partial<Pick<CompactionNote, 'strategy' | 'range' | 'message'>> = {},
): Promise<void> {
  const { deps, live, lease, step } = run;
  const what = more.strategy ? `.${more.strategy}` : '';
  // By reason too: one that could do nothing counts for nothing, and a refusal may ask for another.
  const part = `${kind}:${lease.record.fence}.${step}.${attempt}.${reason}${what}`;
  const own = ownDraft(run, part);
  const tokens = { before, after: kind === 'compaction.started' ? null : after };
  const body: CompactionNote = {
    agent: live.address.agent,
    attempt,
    step: step + 1,
    reason,
    tokens,
    ...more,
  };
  await deps.log.append(live.address, [{ ...own, kind, body }]);
  countCompaction(deps.metrics, kind, body);
}

function countCompaction(
  metrics: Metrics,
  kind: NoteKind,
  { reason, strategy = 'prune', tokens }: CompactionNote,
): void {
  if (kind === 'compaction.failed') metrics.count('compactions_failed', { reason });
  if (kind !== 'compaction.done' && kind !== 'compaction.pruned') return;
  metrics.count('compactions', { strategy, reason });
  metrics.count(
    'compaction_saved_tokens',
    { strategy, reason },
    tokens.before - (tokens.after ?? tokens.before),
  );
}
