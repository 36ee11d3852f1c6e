import {
  type EventDraft,
  type EventId,
  type Halt,
  NO_USAGE,
  type PinnedTurn,
  runtimeId,
} from '../../events/index.ts';
import { TroupeError } from '../../errors.ts';
import type { AgentEvent, EffectName } from '../../machines/agent-lifecycle.ts';
import { assemble } from './assemble.ts';
import { backOff } from './back-off.ts';
import { callModel } from './call-model.ts';
import { commitTurn } from './commit-turn.ts';
import { type EngineDeps, KEPT_MS } from '../engine/engine-deps.ts';
import { readBaseline } from './freeze-baseline.ts';
import type { Lease } from '../engine/lease.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';
import type { LiveActor } from '../engine/registry.ts';
import { policyFor } from '../compaction/compaction-policy.ts';
import { runCompaction } from '../compaction/run-compaction.ts';
import { runCalls } from './run-calls.ts';
import { NO_CALLS } from './repeated-calls.ts';
import { sessionRun } from '../sessions/session-run.ts';
import { leaveSession } from '../sessions/settle-session.ts';
import { reachOf } from '../steering/reach.ts';
import { superviseTurn } from '../supervision/supervise-turn.ts';
import { stopDraft } from '../tasks/call-effects.ts';
import { CALLED_OFF, isTurnCalledOff } from '../tasks/called-off.ts';
import { advance } from './transition.ts';
import { applyOutcome, type MutableTurnRun, type TurnRun, writeMeanwhile } from './turn-run.ts';
import { watchTurn } from './watch-turn.ts';

/** Allowance for clocks that differ between the process that removes records and the one that resumes. */
const FORGET_MARGIN_MS = 3_600_000;

/** The effects that the machine's tags name. */
const EFFECTS: Record<EffectName, (run: MutableTurnRun) => Promise<AgentEvent>> = {
  assemble,
  callModel,
  runCalls: async (run) => applyOutcome(run, await runCalls(run)),
  backOff: async (run) => applyOutcome(run, await backOff(run)),
  compact: runCompaction,
  supervise: async (run) => applyOutcome(run, await superviseTurn(run)),
  commit: commitTurn,
};

/**
 * Drives one pinned turn to its commit: the machine says which effect comes next, the effect says what happened.
 * A turn that was started too often, or whose effect throws, ends as `turn.failed` by the same commit.
 */
export async function runTurn(
  deps: EngineDeps,
  lease: Lease,
  runtime: AgentRuntime,
  live: LiveActor,
  turn: PinnedTurn,
  { resumed }: { resumed: boolean },
): Promise<void> {
  const run = await startRun(deps, lease, runtime, live, turn, resumed);
  advance(run, { type: 'PINNED' });
  if (resumed && (await isForgotten(deps, live, turn))) {
    advance(run, refuse(run, forgotten()));
  } else if (turn.attempt > deps.limits.maxAttempts) {
    advance(run, refuse(run, poison(deps, turn)));
  } else if (turn.halt) {
    advance(run, halted(run, turn.halt));
  }
  try {
    for (let effect = effectOf(live); effect; effect = effectOf(live)) {
      advance(run, await perform(run, effect));
    }
  } finally {
    leaveSession(run);
    run.watch.end({ ...run, usage: run.meanwhile.usage });
  }
}

async function perform(run: MutableTurnRun, effect: EffectName): Promise<AgentEvent> {
  const { lease, deps } = run;
  if (effect !== 'commit' && lease.signal.aborted) return breakOff(run);
  if (effect !== 'commit' && deps.stopping.aborted) throw deps.stopping.reason;
  try {
    if (mayAskAgain(run, effect) && (await isTurnCalledOff(run))) {
      run.ending = { kind: 'aborted', by: CALLED_OFF };
      return { type: 'ABORTED' };
    }
    const event = await run.watch.effect(effect, () => EFFECTS[effect](run));
    return event.type === 'ABORTED' ? breakOff(run) : event;
  } catch (error) {
    // A commit that fails, and a lease or store that is gone, leave the turn pinned for whoever takes it next.
    if (effect === 'commit' || (error instanceof TroupeError && error.code !== 'internal')) throw error;
    deps.onWarning(error, `${effect} of ${run.turn.id}`);
    return refuse(run, new TroupeError('internal', error instanceof Error ? error.message : String(error)));
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

/** Asked to stop: the turn ends as aborted. Lost lease or shutdown: nothing ends here, the turn stays pinned. */
function breakOff(run: MutableTurnRun): AgentEvent {
  if (run.ending.kind === 'aborted') return { type: 'ABORTED' };
  const reason: unknown = run.lease.signal.reason;
  if (!(reason instanceof TroupeError) || reason.code !== 'aborted') throw reason;
  run.ending = { kind: 'aborted', by: 'command' };
  return { type: 'ABORTED' };
}

function refuse(run: MutableTurnRun, error: TroupeError): AgentEvent {
  run.ending = { kind: 'failed', code: error.code, message: error.message };
  return { type: 'REFUSED' };
}

/** Ends a turn without a model: a guard's stop is logged; a turn that nobody waits for ends in silence. */
function halted(run: MutableTurnRun, halt: Halt): AgentEvent {
  if (halt.kind === 'guard') {
    const { guard, message, goOn } = halt;
    run.outputs = [...run.outputs, stopDraft(run, { guard, message, goOn })];
    return refuse(run, new TroupeError('guard_stopped', message, { guard }));
  }
  run.silent = true;
  return { type: 'REFUSED' };
}

function poison(deps: EngineDeps, turn: PinnedTurn): TroupeError {
  return new TroupeError(
    'poison',
    `the turn was started ${turn.attempt - 1} times and never ended (limits.maxAttempts ${deps.limits.maxAttempts}): the process was killed or the work hung each time`,
  );
}

/** Without journal and ledger it is unknown which calls were made, so none may be made again. */
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

async function startRun(
  deps: EngineDeps,
  lease: Lease,
  runtime: AgentRuntime,
  live: LiveActor,
  turn: PinnedTurn,
  resumed: boolean,
): Promise<MutableTurnRun> {
  // As pinned: a retry after a change of configuration still sends what the first attempt sent.
  if (live.baseline?.id !== turn.baseline) {
    live.baseline = await readBaseline(deps.store, live.address, runtime, turn.baseline);
  }
  const model = await deps.models.get(live.address.tenant, runtime.profile);
  const run: MutableTurnRun = {
    deps,
    lease,
    runtime,
    live,
    turn,
    baseline: live.baseline,
    model,
    policy: policyFor(runtime, model),
    session: sessionRun(lease.record),
    steer: { step: 0, seen: reachOf(turn), key: null },
    compaction: { step: -1, count: 0, tried: false, reason: null, replayed: -1, overflowed: false },
    watch: watchTurn(deps, runtime, live, turn, resumed),
    resumed,
    meanwhile: { writing: [], partial: '', usage: NO_USAGE },
    givenUp: false,
    step: 0,
    prompt: null,
    sending: null,
    recorded: null,
    last: null,
    answer: null,
    failure: null,
    outputs: [],
    repeated: NO_CALLS,
    posts: [],
    timers: [],
    silent: false,
    isAddressedAgain: false,
    ending: { kind: 'done' },
  };
  writeMeanwhile(run, deps.log.append(live.address, [startedDraft(runtime, turn)]));
  return run;
}

function startedDraft(runtime: AgentRuntime, turn: PinnedTurn): EventDraft {
  const { id, name } = runtime.profile;
  const { upTo, inputs, live, join, baseline, context, rendering } = turn;
  const rules = rendering === undefined ? {} : { rendering };
  return {
    id: startedId(turn),
    author: { kind: 'agent', id, name },
    to: [],
    turn: turn.id,
    kind: 'turn.started',
    body: { upTo, inputs, live, join, baseline, ...rules },
    ...(context && { context }),
  };
}

function startedId({ id }: PinnedTurn): EventId {
  return runtimeId(id, 'started');
}
