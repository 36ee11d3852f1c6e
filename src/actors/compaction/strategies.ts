import {
  adoptStrategy,
  earlySteps,
  isWorthwhile,
  latestCompaction,
  proposeCut,
  pruneStrategy,
  replaceTurnSummary,
  type StrategyOutcome,
  takeCompaction,
  trimStrategy,
  turnPrefixSteps,
  verifySummary,
} from '../../context/index.ts';
import type { CompactionEffect, CompactionEvent } from '../../machines/compaction.ts';
import { inSlices } from '../engine/in-slices.ts';
import { makeCompaction, readCompaction, summariserWindow, takeLock } from './make-compaction.ts';
import { requestTokens } from '../turn/model-window.ts';
import { brokenCircuit, noteCompaction, type TurnCompaction } from './turn-compaction.ts';
import { askSummary } from './ask-summary.ts';

/** The strategies that the machine's tags name. Each returns the machine's next event. */
export const STRATEGIES: Record<
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

/** Pause between checks for the other agent's compaction, ms. */
const LOOK_MS = 250;

/**
 * Waits for the compaction that another agent of this conversation is making: one call serves all agents. Waits no longer
 * than a lease, because that agent's process may have died. The machine then asks for the lock again, or continues
 * without a model.
 */
async function awaitOther({ run }: TurnCompaction): Promise<CompactionEvent> {
  const { deps, live, lease } = run;
  const { view, address } = live;
  const number = (latestCompaction(view)?.body.number ?? 0) + 1;
  const quit = AbortSignal.any([lease.signal, deps.stopping]);
  const patience = deps.clock.monotonic() + deps.limits.leaseMs;
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
 * Asks a model to summarise the early steps of a turn that has become too long. If it fails, the extract made without a
 * model stays. Returns false if the turn is to stop.
 */
async function summariseSteps(work: TurnCompaction): Promise<boolean> {
  const { run, plan, policy } = work;
  const { view } = run.live;
  // A rewrite that gains too little is not made, so its summary would be paid for nothing.
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
