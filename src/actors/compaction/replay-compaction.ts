import {
  type EventDraft,
  EventDraft as EventDraftSchema,
  type CompactionReason,
} from '../../events/index.ts';
import { changed, type TurnRun } from '../turn/turn-run.ts';

/**
 * Journals a compaction before the prompt that follows from it is sent, so a process that resumes the turn sends the same
 * prompt. The first entry counts, as with model answers.
 */
export async function journalCompaction(run: TurnRun, draft: EventDraft): Promise<EventDraft> {
  const { deps, live } = run;
  const key = compactionKey(run, run.compaction.count);
  const kept = JSON.stringify(deps.redaction?.draft(draft) ?? draft);
  const stored = await deps.store.journal(live.address.tenant, key, kept, deps.clock.now());
  return EventDraftSchema.parse(JSON.parse(stored));
}

/** Applies again what was decided for this step before a crash. */
export async function replayCompaction(before: TurnRun): Promise<TurnRun> {
  if (!before.resumed || before.compaction.replayed === before.step) return before;
  const { deps, live, step } = before;
  let run = beginStep(before);
  run = changed(run, { compaction: { ...run.compaction, replayed: step } });
  for (;;) {
    const key = compactionKey(run, run.compaction.count);
    const stored = await deps.store.readJournal(live.address.tenant, key);
    if (stored === null) return run;
    const draft = EventDraftSchema.parse(JSON.parse(stored));
    run = await applyCompaction(run, draft);
    // A refused prompt is shortened once per step, crash or not.
    if (reasonOf(draft) === 'overflow')
      run = changed(run, { compaction: { ...run.compaction, overflowed: true } });
  }
}

/** Adds the compaction to the turn's outputs, so the log has it between the steps before and after it. */
export async function applyCompaction(run: TurnRun, draft: EventDraft): Promise<TurnRun> {
  const { deps, live } = run;
  const id = draft.kind === 'baseline' ? draft.body.adopts?.compaction : null;
  if (id && !live.view.compactions.has(id)) {
    const event = await deps.store.readById(live.address, id);
    if (event?.kind === 'compaction') live.view.compactions.set(id, event.body);
  }
  const compaction = { ...run.compaction, count: run.compaction.count + 1 };
  if (draft.kind !== 'baseline') return changed(run, { compaction }, { outputs: [draft] });
  const baseline = { ...run.baseline, id: draft.id, body: draft.body };
  live.baseline = baseline;
  return changed(run, { compaction, baseline }, { outputs: [draft] });
}

function reasonOf(draft: EventDraft): CompactionReason | undefined {
  if (draft.kind === 'prune') return draft.body.reason;
  return draft.kind === 'baseline' ? draft.body.adopts?.reason : undefined;
}

/** Resets what is counted per step. */
export function beginStep(run: TurnRun): TurnRun {
  const { compaction, step } = run;
  if (compaction.step === step) return run;
  return changed(run, { compaction: { ...compaction, step, count: 0, tried: false, overflowed: false } });
}

function compactionKey({ turn, step }: TurnRun, count: number): string {
  return `${turn.id}/${step}/relief.${count}`;
}
