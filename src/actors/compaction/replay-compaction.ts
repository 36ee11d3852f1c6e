import {
  type EventDraft,
  EventDraft as EventDraftSchema,
  type CompactionReason,
} from '../../events/index.ts';
import type { FrozenBaseline } from '../engine/agent-runtime.ts';
import { type MutableTurnRun, type TurnRun } from '../turn/turn-run.ts';

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
export async function replayCompaction(run: MutableTurnRun): Promise<void> {
  if (!run.resumed || run.compaction.replayed === run.step) return;
  beginStep(run);
  run.compaction.replayed = run.step;
  const { deps, live } = run;
  for (;;) {
    const stored = await deps.store.readJournal(
      live.address.tenant,
      compactionKey(run, run.compaction.count),
    );
    if (stored === null) return;
    const draft = EventDraftSchema.parse(JSON.parse(stored));
    await applyCompaction(run, draft);
    // A refused prompt is shortened once per step, crash or not.
    if (reasonOf(draft) === 'overflow') run.compaction.overflowed = true;
  }
}

/** Adds the compaction to the turn's outputs, so the log has it between the steps before and after it. */
export async function applyCompaction(run: MutableTurnRun, draft: EventDraft): Promise<void> {
  const { deps, live } = run;
  const id = draft.kind === 'baseline' ? draft.body.adopts?.compaction : null;
  if (id && !live.view.compactions.has(id)) {
    const event = await deps.store.readById(live.address, id);
    if (event?.kind === 'compaction') live.view.compactions.set(id, event.body);
  }
  if (draft.kind === 'baseline') useBaseline(run, { ...run.baseline, id: draft.id, body: draft.body });
  run.outputs = [...run.outputs, draft];
  run.compaction.count += 1;
}

function reasonOf(draft: EventDraft): CompactionReason | undefined {
  if (draft.kind === 'prune') return draft.body.reason;
  return draft.kind === 'baseline' ? draft.body.adopts?.reason : undefined;
}

/** Resets what is counted per step. */
export function beginStep(run: MutableTurnRun): void {
  if (run.compaction.step === run.step) return;
  run.compaction = { ...run.compaction, step: run.step, count: 0, tried: false, overflowed: false };
}

function useBaseline(run: MutableTurnRun, baseline: FrozenBaseline): void {
  run.baseline = baseline;
  run.live.baseline = baseline;
}

function compactionKey({ turn, step }: TurnRun, count: number): string {
  return `${turn.id}/${step}/relief.${count}`;
}
