import { createActor } from 'xstate';
import {
  adoptionOf,
  isEmptyPlan,
  isPruneOnly,
  isWorthwhile,
  leastEstimate,
  presentIn,
} from '../../context/index.ts';
import { type EventDraft, runtimeId } from '../../events/index.ts';
import { compaction, type CompactionEffect } from '../../machines/compaction.ts';
import { changed, type Outcome, ownDraft, type TurnRun } from '../turn/turn-run.ts';
import { nameLargest } from '../turn/model-window.ts';
import { noteCompaction, startCompaction, type TurnCompaction } from './turn-compaction.ts';
import { journalCompaction, applyCompaction } from './replay-compaction.ts';
import { STRATEGIES } from './strategies.ts';

/**
 * Compacts the agent's view. The machine chooses the next strategy, the strategies gather a plan, and the plan is applied
 * as one event, journalled before a prompt that follows from it is sent.
 */
export async function runCompaction(before: TurnRun): Promise<Outcome> {
  const reason = before.compaction.reason ?? 'over_budget';
  const run = changed(before, { compaction: { ...before.compaction, tried: true, reason: null } });
  const work = startCompaction(run, reason);
  await noteCompaction(work, 'started');
  if ((await runStrategies(work)) === 'aborted') return aborted(run);
  // A plan that cannot make the prompt fit is dropped: nothing is left out for a prompt that fails anyway.
  if (isEmptyPlan(work.plan) || !isWorthwhile(work) || leastEstimate(work.after, 0) > work.room.available)
    return stuck(work);
  const draft = await journalCompaction(run, draftOf(work));
  const strategy = work.used.at(-1);
  const done = draft.kind === 'prune' ? 'pruned' : 'done';
  // Before the plan is applied: an effect that throws afterwards would lose the new baseline, which the view is to have.
  await noteCompaction(work, done, {
    ...(strategy && { strategy }),
    ...(work.plan.compaction && { range: { from: 1, upTo: work.plan.compaction.upTo } }),
  });
  const compacted = await applyCompaction(run, draft);
  run.live.compactionStuckAt = work.after > work.room.trigger ? work.after : null;
  // Clears the failure set by the refusal that caused this compaction.
  return { event: { type: 'COMPACTED' }, run: changed(compacted, { ending: { kind: 'done' } }) };
}

/** A stopping process leaves the turn pinned: its successor compacts. */
function aborted(run: TurnRun): Outcome {
  if (!run.lease.signal.aborted) throw run.deps.stopping.reason;
  return { event: { type: 'ABORTED' }, run };
}

async function stuck(work: TurnCompaction): Promise<Outcome> {
  const { run, reason, before, room, plan } = work;
  // A person may ask for more than is needed: that nothing was gained then says nothing of what comes.
  if (reason !== 'manual') run.live.compactionStuckAt = before <= room.available ? before : null;
  const message = isEmptyPlan(plan)
    ? 'nothing more can be left out'
    : 'what can be left out does not make enough room';
  await noteCompaction(work, 'failed', { message });
  if (reason !== 'overflow' || run.ending.kind !== 'failed' || !run.prompt)
    return { event: { type: 'COMPACTED' }, run };
  // The same request would be refused again.
  const why = `${run.ending.message}. ${nameLargest(run, run.prompt)}`;
  return { event: { type: 'REFUSED' }, run: changed(run, { ending: { ...run.ending, message: why } }) };
}

async function runStrategies(work: TurnCompaction): Promise<'ended' | 'aborted'> {
  const machine = createActor(compaction);
  machine.subscribe({ error: () => undefined }); // reported by the snapshot below
  machine.start();
  machine.send({ type: 'START', reason: work.reason });
  for (;;) {
    const snapshot = machine.getSnapshot();
    if (snapshot.status === 'error') throw snapshot.error;
    if (snapshot.status === 'done') return snapshot.value === 'aborted' ? 'aborted' : 'ended';
    const [effect] = snapshot.tags as Set<CompactionEffect>;
    if (!effect) throw new Error(`the compaction machine has no effect in ${JSON.stringify(snapshot.value)}`);
    machine.send(await STRATEGIES[effect](work));
  }
}

function draftOf(work: TurnCompaction): EventDraft {
  const { run, reason, before, after, room } = work;
  const plan = presentIn(run.live.view, work.plan);
  const tokens = { before, after, trigger: room.trigger };
  const number = run.compaction.count;
  if (isPruneOnly(plan)) {
    const events = [...plan.pruned];
    const memories = [...plan.forgotten];
    return {
      ...ownDraft(run, `relief:${run.step}.${number}`),
      kind: 'prune',
      body: { events, memories, reason, tokens },
    };
  }
  const { body } = run.baseline;
  const epoch = body.epoch + 1;
  const own = ownDraft(run, '');
  return {
    ...own,
    id: runtimeId('baseline', run.live.address.agent, epoch),
    kind: 'baseline',
    body: { ...body, epoch, reason: `compaction: ${reason}`, adopts: adoptionOf(plan, { reason, tokens }) },
  };
}
