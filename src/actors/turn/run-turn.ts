import { type Halt, NO_USAGE, type PinnedTurn } from '../../events/index.ts';
import { TroupeError } from '../../errors.ts';
import type { EffectName } from '../../machines/agent-lifecycle.ts';
import { askedReply } from './asked-reply.ts';
import { assemble } from './assemble.ts';
import { backOff } from './back-off.ts';
import { callModel } from './call-model.ts';
import { commitTurn } from './commit-turn.ts';
import { type EngineDeps, KEPT_MS } from '../engine/engine-deps.ts';
import { readBaseline } from './freeze-baseline.ts';
import type { LiveActor } from '../engine/registry.ts';
import type { TurnSlot } from '../engine/turn-slot.ts';
import { policyFor } from '../compaction/compaction-policy.ts';
import { runCompaction } from '../compaction/run-compaction.ts';
import { runCalls } from './run-calls.ts';
import { NO_CALLS } from './repeated-calls.ts';
import { readRerun } from '../reruns/run-again.ts';
import { adoptSession } from '../sessions/adopt-session.ts';
import { NEW_SESSION_RUN } from '../sessions/session-run.ts';
import { leaveSession } from '../sessions/settle-session.ts';
import { reachOf } from './reach.ts';
import { startedDraft, startedId } from './started.ts';
import { showActivity } from './show-activity.ts';
import { superviseTurn } from '../supervision/supervise-turn.ts';
import { stopDraft } from '../tasks/call-effects.ts';
import { CANCELLED, isTurnCancelled } from '../tasks/cancellation.ts';
import { advance } from './transition.ts';
import { type ActiveActor, changed, type Outcome, type TurnRun, writeMeanwhile } from './turn-run.ts';
import { watchTurn } from './watch-turn.ts';

/** Allowance for clocks that differ between the process that removes records and the one that resumes. */
const FORGET_MARGIN_MS = 3_600_000;

/** The effects that the machine's tags name. */
const EFFECTS: Record<EffectName, (run: TurnRun) => Promise<Outcome>> = {
  assemble,
  callModel,
  runCalls,
  backOff,
  compact: runCompaction,
  supervise: (run) =>
    isPlainAnswer(run) ? Promise.resolve({ event: { type: 'ACCEPTED' }, run }) : superviseTurn(run),
  commit: commitTurn,
};

/** An answer in words, of an agent that keeps no list: nothing holds back the end of the turn. */
function isPlainAnswer({ answer, runtime }: TurnRun): boolean {
  return answer !== null && !answer.fault && answer.text.trim() !== '' && !runtime.tools.has('todo');
}

/**
 * Drives one pinned turn to its commit: the machine names the next effect, and the effect returns the machine's next event.
 * A turn that was started too often, or whose effect throws, ends as `turn.failed` by the same commit.
 */
export async function runTurn(start: TurnStart): Promise<void> {
  const { live } = start;
  let run = await startRun(start);
  let isOver = false;
  advance(run, { type: 'PINNED' });
  try {
    let outcome = await refusalOf(run);
    for (;;) {
      if (outcome) {
        ({ run } = outcome);
        advance(run, outcome.event);
      }
      const effect = effectOf(live);
      if (!effect) {
        isOver = true;
        return;
      }
      outcome = await perform(run, effect);
    }
  } finally {
    if (!isOver) showActivity(run, { kind: 'void', reason: 'the turn was left', all: true });
    if (run.meanwhile.session.open) leaveSession(run);
    run.watch.end({ ...run, usage: run.meanwhile.usage });
  }
}

/** Ends a turn before any work; null if it may be worked on. */
async function refusalOf(run: TurnRun): Promise<Outcome | null> {
  const { deps, live, turn, resumed } = run;
  if (resumed && (await isForgotten(deps, live, turn))) return refuse(run, forgotten());
  if (turn.attempt > deps.limits.maxAttempts) return refuse(run, poison(deps, turn));
  return turn.halt ? halted(run, turn.halt) : null;
}

async function perform(run: TurnRun, effect: EffectName): Promise<Outcome> {
  const { lease, deps } = run;
  if (effect !== 'commit' && lease.signal.aborted) return breakOff(run);
  if (effect !== 'commit' && deps.stopping.aborted) throw deps.stopping.reason;
  try {
    if (mayAskAgain(run, effect) && (await isTurnCancelled(run)))
      return {
        event: { type: 'ABORTED' },
        run: changed(run, { ending: { kind: 'aborted', by: CANCELLED } }),
      };
    const outcome = await run.watch.effect(effect, () => EFFECTS[effect](run));
    return outcome.event.type === 'ABORTED' ? breakOff(outcome.run) : outcome;
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'context_too_costly')
      return refuse(changed(run, { turn: run.meanwhile.pinned }), error);
    // After a failed commit, a lost lease or an unavailable store the turn stays pinned for its next holder.
    if (effect === 'commit' || (error instanceof TroupeError && error.code !== 'internal')) throw error;
    deps.onWarning(error, `${effect} of ${run.turn.id}`);
    const reason = new TroupeError('internal', error instanceof Error ? error.message : String(error));
    return refuse(changed(run, { turn: run.meanwhile.pinned }), reason);
  }
}

/** Whether to check again that the turn is still wanted: before every model call but the first. */
function mayAskAgain({ step, resumed, failure }: TurnRun, effect: EffectName): boolean {
  return effect === 'assemble' ? step > 0 || resumed : effect === 'callModel' && failure !== null;
}

function effectOf({ state }: LiveActor): EffectName | undefined {
  for (const tag of state.tags) return tag as EffectName;
  return undefined;
}

/** Ends the turn as aborted if it was asked to stop. After a lost lease or at a shutdown it throws: the turn stays pinned. */
function breakOff(run: TurnRun): Outcome {
  if (run.ending.kind === 'aborted') return { event: { type: 'ABORTED' }, run };
  const reason: unknown = run.lease.signal.reason;
  if (!(reason instanceof TroupeError) || reason.code !== 'aborted') throw reason;
  return { event: { type: 'ABORTED' }, run: changed(run, { ending: { kind: 'aborted', by: 'command' } }) };
}

function refuse(run: TurnRun, { code, message }: TroupeError): Outcome {
  return { event: { type: 'REFUSED' }, run: changed(run, { ending: { kind: 'failed', code, message } }) };
}

/** Ends a turn without a model call. The stop of a guard is logged; the turn of a cancelled task ends silently. */
function halted(run: TurnRun, halt: Halt): Outcome {
  if (halt.kind !== 'guard') return { event: { type: 'REFUSED' }, run: changed(run, { silent: true }) };
  const { guard, message, goOn } = halt;
  const outputs = [stopDraft(run, { guard, message, goOn })];
  return refuse(changed(run, {}, { outputs }), new TroupeError('guard_stopped', message, { guard }));
}

function poison(deps: EngineDeps, turn: PinnedTurn): TroupeError {
  return new TroupeError(
    'poison',
    `the turn was started ${turn.attempt - 1} times and never ended (limits.maxAttempts ${deps.limits.maxAttempts}): the process was killed or the work hung each time`,
  );
}

/** Whether journal and ledger have expired: it is then unknown which calls were made, so none may be repeated. */
async function isForgotten(
  { store, clock }: EngineDeps,
  { address }: LiveActor,
  turn: PinnedTurn,
): Promise<boolean> {
  const started = await store.readById(address, startedId(turn));
  return started !== null && started.at < clock.now() - KEPT_MS + FORGET_MARGIN_MS;
}

function forgotten(): TroupeError {
  return new TroupeError(
    'poison',
    'the turn was left for so long that what it had done is no longer recorded; ask again to begin anew',
  );
}

interface TurnStart extends ActiveActor {
  readonly slot: TurnSlot;
  readonly turn: PinnedTurn;
  /** True if the turn was begun before. */
  readonly resumed: boolean;
}

async function startRun(given: TurnStart): Promise<TurnRun> {
  const again = given.turn.rerun === undefined ? null : await readRerun(given);
  const known = again?.runtime ?? given.runtime;
  const asked = given.turn.reply;
  const start = { ...given, runtime: asked ? { ...known, reply: askedReply(asked) } : known };
  const { deps, lease, runtime, live, slot, turn, resumed } = start;
  // The pinned baseline: after a change of configuration, a later attempt still sends the same prompt.
  if (live.baseline?.id !== turn.baseline) {
    live.baseline = await readBaseline(deps.store, live.address, runtime, turn.baseline);
  }
  const model = await deps.models.get(live.address.tenant, runtime.profile);
  const run: TurnRun = {
    deps,
    lease,
    runtime,
    live,
    slot,
    turn,
    baseline: live.baseline,
    model,
    policy: policyFor(runtime, model),
    steer: { step: 0, seen: reachOf(turn) },
    compaction: { step: 0, count: 0, tried: false, reason: null, replayed: -1, overflowed: false },
    watch: watchTurn(start),
    resumed,
    recorded: again?.recorded ?? null,
    meanwhile: {
      work: { left: deps.limits.turnWork },
      writing: [],
      kept: { receipts: [], answer: null },
      recorded: null,
      pinned: turn,
      key: null,
      session: { base: lease.record.session, ...NEW_SESSION_RUN },
      begun: null,
      images: { shown: [], suspected: [] },
      partial: '',
      usage: NO_USAGE,
      rounds: 0,
    },
    givenUp: false,
    step: 0,
    prompt: null,
    last: null,
    answer: null,
    failure: null,
    outputs: [],
    repeated: NO_CALLS,
    outgoing: [],
    timers: [],
    silent: false,
    isAddressedAgain: false,
    ending: { kind: 'done' },
  };
  // A former holder may have died before its beginning was in the log.
  if (resumed) writeMeanwhile(run, deps.log.append(live.address, [startedDraft(runtime, turn)]));
  if (turn.session) await adoptSession(run);
  return run;
}
