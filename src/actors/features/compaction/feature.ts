import { type Feature, changed, type TurnRun, type Outcome, ownDraft } from '../../attempt/turn-run.ts';
import {
  askSummary,
  recordSummary,
  startCompaction,
  noteCompaction,
  type TurnCompaction,
  makeCompaction,
  readCompaction,
  summariserWindow,
  takeLock,
  brokenCircuit,
} from './make-compaction.ts';
import {
  adoptStrategy,
  choosePrune,
  isEmptyPlan,
  isWorthwhile,
  MAX_REQUEST_BYTES,
  pruneStrategy,
  adoptionOf,
  isPruneOnly,
  leastEstimate,
  presentIn,
  earlySteps,
  latestCompaction,
  proposeCut,
  replaceTurnSummary,
  type StrategyOutcome,
  takeCompaction,
  trimStrategy,
  turnPrefixSteps,
  verifySummary,
} from '../../../context/index.ts';
import {
  type CompactionReason,
  type PromptRecord,
  type EventDraft,
  runtimeId,
  EventDraft as EventDraftSchema,
} from '../../../events/index.ts';
import { WORTH_COMPACTING_PERCENT, nameLargest, requestTokens } from '../../attempt/model-window.ts';
import { createActor } from 'xstate';
import {
  compaction as compactionMachine,
  type CompactionEffect,
  type CompactionEvent,
} from '../../../machines/compaction.ts';
import { inSlices } from '../../log/read-log.ts';

export const compaction: Feature = {
  open: () => ({
    compaction: {
      beginStep,
      replay: replayCompaction,
      reason: compactionReason,
      compact: runCompaction,
      askSummary,
      recordSummary,
    },
  }),
};

/** Factor of growth of the prompt after which a compaction that achieved nothing is tried again. */
const GROWTH = 1.05;
/** A newcomer's history with fewer tokens than `keepTokens` times this is not summarized. */
const JOIN_GROWTH = 1.5;

/** The reason to compact before this prompt is sent; null if it may be sent. At most one compaction per step. */
function compactionReason(run: TurnRun, prompt: PromptRecord): CompactionReason | null {
  const { compaction, live } = run;
  if (compaction.tried || compaction.count > 0) return null;
  const { total, free, percent } = prompt.tokens;
  const stuck = live.compactionStuckAt !== null && total <= live.compactionStuckAt * GROWTH && free >= 0;
  const isFull = percent >= run.policy.trigger * 100 || live.view.bytes > MAX_REQUEST_BYTES;
  if (isFull && !stuck) return 'over_budget';
  if (run.step > 0) return null;
  if (live.view.turn?.isToCompact) return 'manual';
  return stuck ? null : reasonWithRoom(run, prompt);
}

function reasonWithRoom(run: TurnRun, prompt: PromptRecord): CompactionReason | null {
  const { live, policy } = run;
  if (isNewcomer(run) && live.view.tokens > policy.keepTokens * JOIN_GROWTH) return 'join';
  const isWorthIt = prompt.tokens.percent >= WORTH_COMPACTING_PERCENT && isCold(run);
  if (isWorthIt && hasWorkWhenCold(changed(run, { prompt }))) return 'cold_cache';
  return policy.prune.eachTurn && hasOldOutputs(run) ? 'each_turn' : null;
}

function hasOldOutputs({ live, policy }: TurnRun): boolean {
  return choosePrune(live.view, policy).gain >= Math.max(1, policy.prune.minGain);
}

/** Whether the agent joins with this turn, with a summary of the history. */
function isNewcomer({ turn, lease }: TurnRun): boolean {
  return turn.join === 'summary' && lease.record.turnNo === 0;
}

/** Whether the cache has expired. Compares two times of the log, because a prompt must not depend on the clock. */
function isCold({ live, turn, policy }: TurnRun): boolean {
  const { spokeAt } = live.view;
  return spokeAt !== null && turn.at !== undefined && turn.at - spokeAt > policy.coldMs;
}

/** Whether adopting and pruning, which need no model, gain enough. */
function hasWorkWhenCold(run: TurnRun): boolean {
  const work = startCompaction(run, 'cold_cache');
  if (adoptStrategy(work) !== 'fits') pruneStrategy(work);
  return !isEmptyPlan(work.plan) && isWorthwhile(work);
}

/**
 * Compacts the agent's view. The machine chooses the next strategy, and the strategies extend a plan. The plan is applied as
 * one event, which is journalled before the resulting prompt is sent.
 */
async function runCompaction(before: TurnRun): Promise<Outcome> {
  const reason = before.compaction.reason ?? 'over_budget';
  const run = changed(before, { compaction: { ...before.compaction, tried: true, reason: null } });
  const work = startCompaction(run, reason);
  await noteCompaction(work, 'started');
  if ((await runStrategies(work)) === 'aborted') return aborted(run);
  // A plan that cannot make the prompt fit is dropped, because the prompt would fail in any case.
  if (isEmptyPlan(work.plan) || !isWorthwhile(work) || leastEstimate(work.after, 0) > work.room.available)
    return stuck(work);
  const draft = await journalCompaction(run, draftOf(work));
  const strategy = work.used.at(-1);
  const done = draft.kind === 'prune' ? 'pruned' : 'done';
  // Logged before the plan is applied. If it threw afterwards, the view would have a baseline that the run lacks.
  await noteCompaction(work, done, {
    ...(strategy && { strategy }),
    ...(work.plan.compaction && { range: { from: 1, upTo: work.plan.compaction.upTo } }),
  });
  const compacted = await applyCompaction(run, draft);
  run.live.compactionStuckAt = work.after > work.room.trigger ? work.after : null;
  // `ending` clears the failure of the refusal that caused this compaction.
  return { event: { type: 'COMPACTED' }, run: changed(compacted, { ending: { kind: 'done' } }) };
}

/** The outcome of an aborted compaction. A stopping process leaves the turn pinned, and its successor compacts. */
function aborted(run: TurnRun): Outcome {
  if (!run.lease.signal.aborted) throw run.deps.stopping.reason;
  return { event: { type: 'ABORTED' }, run };
}

async function stuck(work: TurnCompaction): Promise<Outcome> {
  const { run, reason, before, room, plan } = work;
  // A person's request that gained nothing does not mean that a later, necessary compaction gains nothing.
  if (reason !== 'manual') run.live.compactionStuckAt = before <= room.available ? before : null;
  const message = isEmptyPlan(plan)
    ? 'nothing more can be left out'
    : 'what can be left out does not make enough room';
  await noteCompaction(work, 'failed', { message });
  if (reason !== 'overflow' || run.ending.kind !== 'failed' || !run.prompt)
    return { event: { type: 'COMPACTED' }, run };
  // The turn fails, because the same request would be refused again.
  const why = `${run.ending.message}. ${nameLargest(run, run.prompt)}`;
  return { event: { type: 'REFUSED' }, run: changed(run, { ending: { ...run.ending, message: why } }) };
}

async function runStrategies(work: TurnCompaction): Promise<'ended' | 'aborted'> {
  const machine = createActor(compactionMachine);
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

/**
 * Journals a compaction before the resulting prompt is sent, so that a process that resumes the turn sends the same prompt. The
 * first entry counts, as with model answers.
 */
async function journalCompaction(run: TurnRun, draft: EventDraft): Promise<EventDraft> {
  const { deps, live } = run;
  const key = compactionKey(run, run.compaction.count);
  const kept = JSON.stringify(deps.redaction?.draft(draft) ?? draft);
  const stored = await deps.store.journal(live.address.tenant, key, kept, deps.clock.now());
  return EventDraftSchema.parse(JSON.parse(stored));
}

async function replayCompaction(before: TurnRun): Promise<TurnRun> {
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
    // A refused prompt is shortened once per step, even after a crash.
    if (reasonOf(draft) === 'overflow')
      run = changed(run, { compaction: { ...run.compaction, overflowed: true } });
  }
}

/** Adds the compaction to the turn's outputs, so that the log has it between the steps before and after it. */
async function applyCompaction(run: TurnRun, draft: EventDraft): Promise<TurnRun> {
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

function beginStep(run: TurnRun): TurnRun {
  const { compaction, step } = run;
  if (compaction.step === step) return run;
  return changed(run, { compaction: { ...compaction, step, count: 0, tried: false, overflowed: false } });
}

function compactionKey({ turn, step }: TurnRun, count: number): string {
  return `${turn.id}/${step}/relief.${count}`;
}

/** The strategies by the machine's tags. Each returns the machine's next event. */
const STRATEGIES: Record<
  CompactionEffect,
  (work: TurnCompaction) => CompactionEvent | Promise<CompactionEvent>
> = {
  adopt: (work) => eventFor(adoptStrategy(work)),
  prune: (work) => eventFor(pruneStrategy(work)),
  summarise: (work) => compactBy(work, 'summary'),
  awaitOther,
  extract: (work) => compactBy(work, 'extraction'),
  trim,
};

async function trim(work: TurnCompaction): Promise<CompactionEvent> {
  const steps = work.plan.turn?.steps;
  const { outputs, deps, meanwhile } = work.run;
  const outcome = await inSlices(deps.clock, trimStrategy(work, outputs, deps.countTokens), meanwhile.work);
  const isSplit = work.plan.turn !== null && work.plan.turn.steps !== steps;
  if (isSplit && !(await summariseSteps(work))) return { type: 'ABORTED' };
  return eventFor(outcome);
}

async function compactBy(work: TurnCompaction, strategy: 'summary' | 'extraction'): Promise<CompactionEvent> {
  const cut = proposeCut(work);
  if (!cut) {
    const message = strategy === 'summary' ? brokenCircuit(work) : null;
    if (message !== null) await noteCompaction(work, 'failed', { strategy, message });
    return { type: 'SKIPPED' };
  }
  const made = await makeCompaction(work, cut, strategy);
  return made.kind === 'made' ? eventFor(takeCompaction(work, made.compaction, strategy)) : made.event;
}

const EVENTS = { fits: 'FITS', gained: 'NOT_ENOUGH', nothing: 'SKIPPED' } as const;

function eventFor(outcome: StrategyOutcome): CompactionEvent {
  return { type: EVENTS[outcome] };
}

const LOOK_MS = 250;
/** Maximum wait for it, ms. Most summaries are written by then. */
const PATIENCE_MS = 30_000;

/**
 * Waits for the compaction that another agent of this conversation is making, because one call serves all agents. Waits at most
 * `PATIENCE_MS`, because that agent's process may have died. Then the machine asks for the lock again, or continues without a
 * model.
 */
async function awaitOther({ run }: TurnCompaction): Promise<CompactionEvent> {
  const { deps, live, lease } = run;
  const { view, address } = live;
  const number = (latestCompaction(view)?.body.number ?? 0) + 1;
  const quit = AbortSignal.any([lease.signal, deps.stopping]);
  const patience = deps.clock.monotonic() + PATIENCE_MS;
  while (!quit.aborted) {
    const event = await readCompaction(deps.store, address, number);
    if (event) {
      view.compactions.set(event.id, event.body);
      return { type: 'ADOPTABLE' };
    }
    if (deps.clock.monotonic() >= patience || (await takeLock(run, number))) return { type: 'LOCK_EXPIRED' };
    await deps.clock.sleep(LOOK_MS, quit);
  }
  return { type: 'ABORTED' };
}

/**
 * Asks a model to summarise the early steps of a turn that has become too long. If that fails, the extract made without a
 * model is kept. Returns false if the turn is aborted.
 */
async function summariseSteps(work: TurnCompaction): Promise<boolean> {
  const { run, plan, policy } = work;
  const { view } = run.live;
  // A plan that gains too little is not applied, so its summary would be paid for nothing.
  if (!plan.turn || !run.runtime.summarises || !isWorthwhile(work)) return true;
  const { id, steps } = plan.turn;
  const count = run.deps.countTokens;
  const fitting = turnPrefixSteps({
    turn: id,
    trigger: view.slots.findLast(({ layer }) => layer === 'trigger')?.message.content ?? '',
    previous: null,
    outputs: earlySteps(run.outputs, steps),
    budgetTokens: policy.summaryTokens,
    secret: view.secret,
    maxTokens: requestTokens(await summariserWindow(run), policy.summaryTokens),
    count,
  });
  const request = await inSlices(run.deps.clock, fitting, run.meanwhile.work);
  if (!request) return true;
  await noteCompaction(work, 'summarising', { strategy: 'trim' });
  const answer = await askSummary(run, request, Math.ceil(policy.summaryTokens * 1.5));
  if (answer.kind === 'aborted') return false;
  const verdict =
    answer.kind === 'failed'
      ? { kind: 'rejected' as const, why: `${answer.code}: ${answer.message}` }
      : verifySummary(answer.text, { inputTokens: request.tokens, maxTokens: policy.summaryTokens, count });
  const why =
    verdict.kind === 'rejected' ? verdict.why : replaceTurnSummary(work, verdict.text) ? null : 'too_long';
  if (why !== null) {
    const message = `the summary of the first ${steps} steps was rejected: ${why}`;
    await noteCompaction(work, 'failed', { strategy: 'trim', message });
  }
  return true;
}
