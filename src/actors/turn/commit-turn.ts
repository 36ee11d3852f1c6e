import type { EventContext, EventDraft, PinnedTurn, Timer } from '../../events/index.ts';
import {
  AGENT_MACHINE_VERSION,
  type AgentEvent,
  nextAgent,
  saveAgent,
  type WaitsFor,
} from '../../machines/agent-lifecycle.ts';
import { isTaskOpen, openTasks } from '../../machines/task-book.ts';
import { TroupeError } from '../../errors.ts';
import type { ActorPatch } from '../../store/store.ts';
import { isWorthStoring } from '../checkpoints/actor-checkpoint.ts';
import type { LeaseStep } from '../engine/lease.ts';
import { preview } from '../../tools/preview.ts';
import { advanceRuns } from '../workflows/advance-runs.ts';
import { sessionPatch } from '../sessions/settle-session.ts';
import { hasMore } from '../steering/look-beyond.ts';
import { coversOf, reachOf } from './reach.ts';
import { showAllSteered, showSteered, stoppedBy } from '../steering/steer-turn.ts';
import { type TaskEnds, taskEnds } from '../tasks/complete-task.ts';
import { changed, type ModelAnswer, type Outcome, ownDraft, type TurnRun } from './turn-run.ts';
import { replayCompaction } from '../compaction/replay-compaction.ts';
import { runCalls } from './run-calls.ts';
import { correct } from '../supervision/supervise-turn.ts';
import { judge } from '../supervision/judge.ts';
import { journalStep, openStep } from '../steering/step-journal.ts';

/**
 * Ends a turn in one fenced compare-and-set of index, snapshot and all outputs. Nothing is published before it, and
 * nothing at all if the fence is lost. If the turn was asked to stop, the same write refuses it and the turn ends as
 * aborted: after an acknowledged stop there is no reply.
 */
export async function commitTurn(before: TurnRun): Promise<Outcome> {
  const { lease } = before;
  await Promise.all(before.meanwhile.writing);
  const run = await withLastWords(before);
  const cancelled = lease.record.cancel === run.turn.id;
  if (run.ending.kind !== 'aborted' && !cancelled) {
    const committed = await lease.step({ ...(await stepOf(run)), expect: { notCancelled: true } });
    if (committed) return ended(run);
  }
  const stopped = changed(run, { ending: { kind: 'aborted', by: await stoppedBy(run) } });
  const aborted = run.resumed ? await sealTurn(stopped) : stopped;
  const committed = await lease.step(await stepOf(aborted));
  if (!committed) throw new TroupeError('lease_lost', `turn ${run.turn.id} was ended by another process`);
  return ended(aborted);
}

/** Adds the outputs that the log must have before the end of the turn. */
async function withLastWords(before: TurnRun): Promise<TurnRun> {
  const run = changed(before, { isAddressedAgain: await isAddressedAgain(before) });
  const sealed = run.resumed && run.ending.kind !== 'done' ? await sealTurn(run) : run;
  return sealed.turn.steered ? showAllSteered(sealed) : sealed;
}

function ended(run: TurnRun): Outcome {
  const { deps, ending, runtime, live } = run;
  const { usage } = run.meanwhile;
  const { tenant } = live.address;
  const { metrics } = deps;
  const { provider } = runtime.profile;
  metrics.count('turns', { tenant, outcome: ending.kind });
  metrics.count('tokens', { tenant, provider, kind: 'input' }, usage.input);
  metrics.count('tokens', { tenant, provider, kind: 'output' }, usage.output);
  metrics.count('tokens', { tenant, provider, kind: 'cache_read' }, usage.cacheRead);
  metrics.count('tokens', { tenant, provider, kind: 'cache_write' }, usage.cacheWrite);
  metrics.count('tokens', { tenant, provider, kind: 'reasoning' }, usage.reasoning);
  return { event: commitEvent(run), run };
}

function commitEvent(run: TurnRun): AgentEvent {
  return { type: 'COMMITTED', waits: waitsFor(run) };
}

/** If another turn follows, this reply is not the last word on the task. */
async function isAddressedAgain(run: TurnRun): Promise<boolean> {
  const { live, ending } = run;
  return (
    live.tasks.thread !== null && isTaskOpen(live.tasks) && ending.kind === 'done' && (await hasMore(run))
  );
}

async function stepOf(run: TurnRun): Promise<LeaseStep> {
  const { live, turn, lease } = run;
  const { conversation } = live.address;
  const { kept } = run.meanwhile;
  // In a fork, the tasks and runs of the original are over.
  const isRerun = turn.rerun !== undefined;
  const ends = isRerun || !hasTasks(run) ? NO_ENDS : taskEnds(run);
  const steps = isRerun || live.tasks.runs.size === 0 ? [] : await advanceRuns(run);
  const isDone = run.ending.kind === 'done';
  const own = [...outputsOf(run), ...endingOf(run), ...ends.events];
  const posts = [...(isDone ? run.outgoing : []), ...ends.outgoing, ...steps];
  const patch: ActorPatch = {
    processed: reachOf(turn),
    cancel: null,
    state: {
      turnNo: lease.record.turnNo + 1,
      lastTurn: turn.id,
      snapshot: saveAgent(nextAgent(live.state, commitEvent(run))),
      machineVersion: AGENT_MACHINE_VERSION,
      turn: null,
      ...(hasSession(run) ? sessionPatch(run) : NO_SESSION),
      timers: [...liveTimers(run), ...(isDone ? run.timers : [])],
    },
  };
  return {
    patch,
    events: [
      ...own.map((draft) => ({ conversation, draft, ifTaken: 'spare' as const })),
      ...posts.map((post) => ({ ...post, ifTaken: 'drop' as const })),
    ],
    receipts: kept.receipts,
    ...(mayRest(run) && { rests: true }),
  };
}

/** Whether nothing is left to do for the lease: its timers are not due, and its folds need not be stored. */
function mayRest({ deps, live, lease }: TurnRun): boolean {
  const now = deps.clock.now();
  if (lease.record.timers.some(({ at }) => at <= now)) return false;
  return !deps.checkpoints || !isWorthStoring(live, deps);
}

const NO_SESSION = { session: null, cursor: null };

function hasSession({ runtime, meanwhile }: TurnRun): boolean {
  return runtime.provider.capabilities.sessionResumption || meanwhile.session.base !== null;
}

/** Whether the agent has ever waited for anybody here, or works in a thread. */
function hasTasks({ live, outputs }: TurnRun): boolean {
  const { tasks, thread } = live.tasks;
  return thread !== null || tasks.size > 0 || outputs.length > 0;
}

const NO_ENDS: TaskEnds = { events: [], outgoing: [] };

/** Events that begin work for others. They are published only if the turn ends as done. */
const BEGINNINGS: readonly EventDraft['kind'][] = [
  'handoff',
  'delegation.opened',
  'question',
  'approval.requested',
];

/** A failed or aborted turn makes no handoffs and opens no tasks: the receiver would answer in its place. */
function outputsOf({ ending, outputs }: TurnRun): readonly EventDraft[] {
  return ending.kind === 'done' ? outputs : outputs.filter(({ kind }) => !BEGINNINGS.includes(kind));
}

/** Timers of ended tasks are dropped. */
function liveTimers({ lease, live }: TurnRun): Timer[] {
  const { tasks } = live.tasks;
  return lease.record.timers.filter(({ task }) => task === undefined || !tasks.get(task)?.end);
}

/** What the agent waits for after this turn. Waits for people come first, because only people need a reminder. */
function waitsFor(run: TurnRun): WaitsFor | null {
  const { live } = run;
  if (!hasTasks(run)) return null;
  const kinds = new Set<string>(openTasks(live.tasks, live.address.agent).map(({ kind }) => kind));
  for (const { kind } of outputsOf(run)) kinds.add(kind);
  if (kinds.has('approval') || kinds.has('approval.requested')) return 'approval';
  if (kinds.has('question')) return 'answer';
  return kinds.has('delegation') || kinds.has('delegation.opened') ? 'delegation' : null;
}

/** All endings share one id, so a turn can have only one. */
function endingOf(run: TurnRun): EventDraft[] {
  const { turn, ending, answer, step, last, meanwhile } = run;
  // A complete answer was already streamed to watchers when the turn was stopped.
  const partial = answer?.text ?? meanwhile.partial;
  const covers = coversOf(turn);
  const end = ownDraft(run, 'end');
  const timed = run.watch.times();
  const times = timed && { times: timed };
  if (ending.kind === 'aborted') {
    return [{ ...end, kind: 'turn.aborted', body: { covers, by: ending.by, partial, ...times } }];
  }
  if (ending.kind === 'failed') {
    const { code, message } = ending;
    const body = { covers, code, message, partial: shown(code, partial), ...times };
    return [{ ...end, kind: 'turn.failed', body }];
  }
  const done: EventDraft = {
    ...end,
    kind: 'turn.done',
    body: {
      covers,
      steps: step + (answer ? 1 : 0),
      usage: meanwhile.usage,
      ...(answer?.stop === 'length' && { cut: 'length' }),
      ...(last && { last }),
      ...times,
    },
  };
  const text = answer?.text ?? '';
  if (text.trim() === '') return [done];
  const body = { content: text, ...dataOf(answer) };
  return [{ ...ownDraft(run, 'reply'), kind: 'message', body, ...modeOf(turn) }, done];
}

/** The mode and the run in which the turn began. */
function modeOf({ context = {} }: PinnedTurn): { context?: EventContext } {
  const { mode, run } = context;
  if (mode === undefined && run === undefined) return {};
  return { context: { ...(mode && { mode }), ...(run !== undefined && { run }) } };
}

/** A reply that never ends is shown to the agent as a preview. The `error` event has all of it. */
function shown(code: string, partial: string): string {
  return code === 'provider_reply_too_long' ? preview(partial).text : partial;
}

function dataOf(answer: ModelAnswer | null): { data?: unknown } {
  return answer && 'data' in answer ? { data: answer.data } : {};
}

/**
 * Seals a turn before it ends, because a former holder of the lease may still be running it. The journalled steps become
 * outputs with what is known of their calls. Behind the last one the ending itself is journalled, once. A former holder
 * that gets there finds the ending and makes no call that the log would not show.
 */
async function sealTurn(before: TurnRun): Promise<TurnRun> {
  const { ending } = before;
  let run = changed(before, { givenUp: true });
  for (;;) {
    run = await replayCompaction(await showSteered(run));
    const entry = (await openStep(run)) ?? (await journalStep(run, { sealed: ending }));
    if ('sealed' in entry) break;
    run = changed(run, { answer: entry });
    if (entry.calls.length > 0) {
      ({ run } = await runCalls(run));
      continue;
    }
    // An answer that was sent back is followed by more steps.
    const verdict = judge(run);
    if (verdict.kind !== 'corrected') break;
    ({ run } = correct(run, verdict.drafts));
    run.meanwhile.partial = '';
  }
  // The recorded calls may have changed the ending; the turn keeps the one it was sealed with.
  return changed(run, { ending });
}
