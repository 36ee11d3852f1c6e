import {
  beginTurnSteps,
  buildPrompt,
  countedKinds,
  deltaOf,
  foldAhead,
  isPlausible,
  leastEstimate,
  MAX_REQUEST_BYTES,
} from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  ACTOR_VERSION,
  type ActorRecord,
  addUsage,
  type Event,
  type EventContext,
  type EventDraft,
  type EventId,
  type TurnRefusal,
  NO_USAGE,
  type OtherCalls,
  passedOverIn,
  type PinnedTurn,
  type PromptRecord,
  runtimeId,
  type Timer,
  type ToolCall,
  turnId,
  type Usage,
} from '../../events/index.ts';
import {
  AGENT_MACHINE_VERSION,
  type AgentEvent,
  type EffectName,
  nextAgent,
  saveAgent,
  type WaitsFor,
} from '../../machines/agent-lifecycle.ts';
import { isTaskOpen, openTasks } from '../../machines/task-fold.ts';
import type { ActorPatch } from '../../store/store.ts';
import { preview } from '../../tools/preview.ts';
import type { AgentRuntime } from '../actor/agent-runtime.ts';
import { type EngineDeps, KEPT_MS } from '../actor/engine-deps.ts';
import { inSlices, catchUp } from '../log/read-log.ts';
import { eventsAt } from '../log/read-turn.ts';
import type { LeaseStep } from '../actor/lease.ts';
import type { LiveActor } from '../actor/registry.ts';
import {
  type TurnSlot,
  type ActiveActor,
  changed,
  type Ending,
  type JournalEntry,
  type ModelAnswer,
  type Outcome,
  ownDraft,
  type TurnRun,
  writeMeanwhile,
  written,
} from '../attempt/turn-run.ts';
import { approvedCalls } from '../tasks/apply-tool-request.ts';
import { stopDraft } from '../tasks/call-effects.ts';
import {
  CANCELLED,
  turnRefusal,
  isOfPeople,
  isThreadCancelled,
  isForCancelledTask,
  type TaskEnds,
  taskEnds,
} from '../tasks/task-ends.ts';
import { askModel, recordPrompt, backOff, takeCall, failCall } from './ask-model.ts';
import { askedReply, replyAskedBy } from './check-reply.ts';
import { freezeBaseline, readBaseline, presentRuntime } from './baseline.ts';
import { correct, judge } from './judge-answer.ts';
import { nameLargest, policyFor, WORTH_COMPACTING_PERCENT } from '../attempt/model-window.ts';
import { promptRulesOf, coversOf, reachAt, reachOf, hasMore, triggersIn } from '../attempt/pinned-turn.ts';
import { redactAnswer, journalStep, openStep, writeKept } from './step-journal.ts';
import { learnRefused } from './images.ts';
import { NO_CALLS } from '../attempt/repeated-calls.ts';
import { runCalls } from './run-calls.ts';
import { NEW_SESSION_RUN } from '../attempt/feature-types.ts';
import { tell, advance } from './hear-answer.ts';
import { contextOf, liveItems, readFacts } from './turn-facts.ts';
import { watchTurn } from '../attempt/watch-turn.ts';

/**
 * A turn, from top to bottom: begin, run, prompt, model, judge, commit. `machines/agent-lifecycle.ts` decides what comes next;
 * `run-calls.ts` calls tools. Features that only some companies use are called through hooks; see `features.ts`.
 */

/* Begin: the inputs are pinned. */

/**
 * Pins the inputs of the next turn before any work. The same write counts the first attempt and logs the beginning. Without
 * inputs it marks the log as processed up to the head and releases the lease.
 */
export async function beginTurn(actor: ActiveActor): Promise<PinnedTurn | null> {
  const { deps, lease, live } = actor;
  const { processed, lastTurn } = lease.record;
  const head = await catchUpBeyond(deps, live, { least: Math.max(processed, lease.published), lastTurn });
  if (processed > head) throw beyondHead(lease.record, head);
  const triggers = triggersIn(live, processed);
  const inputs = deps.agents.former ? await withPassedOver(deps, live, triggers) : triggers;
  const last = inputs.at(-1);
  const { checkpoints } = deps.features;
  const mayKeep = checkpoints !== undefined && hasGrown(live, checkpoints.folds.least);
  const keep = mayKeep ? await checkpoints.keep(live, { isBusy: last !== undefined }) : null;
  if (!last) {
    const found = lease.record.lost > 0 ? { state: { lost: 0 } } : {};
    const settled = { processed: Math.max(processed, head), owner: '', until: 0, ...found };
    if (lease.isHeld || head > processed) await lease.write(settled);
    keep?.();
    return null;
  }
  const turn = await nextTurn(actor, { inputs, last, head });
  // The version is written too, so that an older process leaves the turn alone.
  const { conversation } = live.address;
  const begun = await lease.step({
    patch: { state: { turn, machineVersion: ACTOR_VERSION, lost: 0 } },
    events: [{ conversation, draft: startedDraft(actor.runtime, turn), ifTaken: 'spare' }],
    isRepeated: true,
  });
  if (!begun) throw new TroupeError('lease_lost', `another process took over @${live.address.agent}`);
  keep?.();
  return turn;
}

/** The triggers, with inputs that were passed over while an agent was being renamed. */
async function withPassedOver(
  { store }: EngineDeps,
  { address }: LiveActor,
  triggers: readonly Event[],
): Promise<Event[]> {
  const passedOver = triggers.flatMap((event) => passedOverIn(event) ?? []);
  return [...(await eventsAt({ store }, address, passedOver)), ...triggers];
}

/** Whether the log is so long that its folds may be worth storing. */
function hasGrown({ view, stored }: LiveActor, least: number): boolean {
  return view.upTo >= least && view.upTo > stored.seq;
}

async function nextTurn(
  { deps, lease, runtime: known, live }: ActiveActor,
  { inputs, last, head }: { inputs: readonly Event[]; last: Event; head: number },
): Promise<PinnedTurn> {
  const { address } = live;
  const { baseline: frozen, directions } = live.view;
  const runtime = await presentRuntime(deps, address, known, {
    frozen: frozen?.body ?? null,
    mode: directions.mode,
    isThread: live.tasks.thread !== null,
  });
  const baseline = await freezeBaseline(deps, address, runtime, live);
  const facts = await readFacts(deps, { address, runtime }, live, last);
  const refusal = await refusalBefore(deps, live, inputs);
  const isNamed = inputs.some(({ context }) => context?.session);
  const named = isNamed ? deps.features.sessions?.namedIn(inputs, address.agent) : null;
  const reply = await replyAskedBy(deps, inputs);
  const approved = refusal || live.tasks.tasks.size === 0 ? [] : approvedCalls(live.tasks, inputs);
  return {
    id: turnId(address, lease.record.turnNo + 1),
    upTo: head,
    inputs: inputs.map((event) => event.seq),
    attempt: 1,
    live: liveItems(inputs, live, { runtime, baseline }, facts),
    join: live.tasks.joined.get(address.agent) ?? runtime.profile.join,
    baseline: baseline.id,
    hop: Math.max(...inputs.map((event) => event.hop ?? 0)),
    at: last.at,
    ...promptRulesOf(runtime.profile),
    context: contextOf(baseline, live.view, facts, runtime.tools),
    ...(approved.length > 0 && { approved }),
    ...(refusal && { refusal }),
    ...(reply && { reply }),
    ...(named && { session: named }),
    ...(live.tasks.thread !== null && inputs.some(isOfPeople) && { byPerson: true }),
  };
}

/** Why no model is asked; null if one is. In a conversation that is not a thread, a person is always answered. */
async function refusalBefore(
  deps: EngineDeps,
  { address, tasks }: LiveActor,
  inputs: readonly Event[],
): Promise<TurnRefusal | null> {
  const isInThread = tasks.thread !== null;
  if (!isInThread && !tasks.off && inputs.some(({ author }) => author.kind === 'user')) return null;
  const isCancelled = isInThread && (await isThreadCancelled(deps.store, address.tenant, tasks));
  return turnRefusal(deps, tasks, inputs, isCancelled);
}

/**
 * Extends the folds. If the log in memory ends before the actor's last turn, the store is read. If another process published
 * that turn's end while the agent was paused, the record has no seq for it, so the id of the last turn is compared too.
 */
async function catchUpBeyond(
  deps: EngineDeps,
  live: LiveActor,
  { least, lastTurn }: { least: number; lastTurn: ActorRecord['lastTurn'] },
): Promise<number> {
  const head = await catchUp(deps.log, live.address, live);
  const isBehind = head < least || (lastTurn !== null && live.view.lastTurn !== lastTurn);
  return isBehind ? catchUp(deps.store, live.address, live) : head;
}

/** The error of a record that is ahead of its log. Every new message would count as processed and never be answered. */
function beyondHead({ agent, processed }: ActorRecord, head: number): TroupeError {
  return new TroupeError(
    'actor_corrupt',
    `the record of @${agent} has settled the log up to ${processed}, but it ends at ${head}`,
    { agent, processed, head },
  );
}

function startedDraft(runtime: AgentRuntime, turn: PinnedTurn): EventDraft {
  const { id, name } = runtime.profile;
  const { upTo, inputs, live, join, baseline, context } = turn;
  return {
    id: startedId(turn),
    author: { kind: 'agent', id, name },
    to: [],
    turn: turn.id,
    kind: 'turn.started',
    body: { upTo, inputs, live, join, baseline, ...promptRulesOf(turn) },
    ...(context && { context }),
  };
}

function startedId({ id }: PinnedTurn): EventId {
  return runtimeId(id, 'started');
}

/* Run: the machine names the effects, and an effect returns the next event. */

const EFFECTS: Record<EffectName, (run: TurnRun) => Promise<Outcome>> = {
  assemble,
  callModel,
  runCalls,
  backOff,
  compact,
  supervise: judgeAnswer,
  commit: commitTurn,
};

/** Allowance for different clocks of the process that removes entries and the one that resumes, ms. */
const FORGET_MARGIN_MS = 3_600_000;

/**
 * Runs one pinned turn to its commit: the machine names the next effect, and the effect returns the machine's next event.
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
    if (!isOver) tell(run, { type: 'void', reason: 'the turn was left', all: true });
    if (run.meanwhile.session.open) run.deps.features.sessions?.leave(run);
    run.watch.end({ ...run, usage: run.meanwhile.usage });
  }
}

/** The outcome of a turn that ends before any work; null if it may run. */
async function refusalOf(run: TurnRun): Promise<Outcome | null> {
  const { deps, live, turn, resumed } = run;
  if (resumed && (await isForgotten(deps, live, turn))) return refuse(run, forgotten());
  if (turn.attempt > deps.limits.maxAttempts) return refuse(run, poison(deps, turn));
  return turn.refusal ? withoutModel(run, turn.refusal) : null;
}

async function perform(run: TurnRun, effect: EffectName): Promise<Outcome> {
  const { lease, deps } = run;
  if (effect !== 'commit' && lease.signal.aborted) return breakOff(run);
  if (effect !== 'commit' && deps.stopping.aborted) throw deps.stopping.reason;
  try {
    if (mayAskAgain(run, effect) && (await isForCancelledTask(run)))
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

/** Whether to check again that the turn's task is not cancelled: before every model call except the first. */
function mayAskAgain({ step, resumed, failure }: TurnRun, effect: EffectName): boolean {
  return effect === 'assemble' ? step > 0 || resumed : effect === 'callModel' && failure !== null;
}

function effectOf({ state }: LiveActor): EffectName | undefined {
  for (const tag of state.tags) return tag as EffectName;
  return undefined;
}

/** Ends the turn as aborted if that was requested. After a lost lease or at a shutdown it throws, so the turn stays pinned. */
function breakOff(run: TurnRun): Outcome {
  if (run.ending.kind === 'aborted') return { event: { type: 'ABORTED' }, run };
  const reason: unknown = run.lease.signal.reason;
  if (!(reason instanceof TroupeError) || reason.code !== 'aborted') throw reason;
  return { event: { type: 'ABORTED' }, run: changed(run, { ending: { kind: 'aborted', by: 'command' } }) };
}

function refuse(run: TurnRun, { code, message }: TroupeError): Outcome {
  return { event: { type: 'REFUSED' }, run: changed(run, { ending: { kind: 'failed', code, message } }) };
}

/** Ends a turn without a model call. The stop of a guard is logged. The turn of a cancelled task ends silently. */
function withoutModel(run: TurnRun, refusal: TurnRefusal): Outcome {
  if (refusal.kind !== 'guard') return { event: { type: 'REFUSED' }, run: changed(run, { silent: true }) };
  const { guard, message, goOn } = refusal;
  const outputs = [stopDraft(run, { guard, message, goOn })];
  return refuse(changed(run, {}, { outputs }), new TroupeError('guard_stopped', message, { guard }));
}

function poison(deps: EngineDeps, turn: PinnedTurn): TroupeError {
  return new TroupeError(
    'poison',
    `the turn was started ${turn.attempt - 1} times and never ended (at most ${deps.limits.maxAttempts}): the process was killed or the work hung each time`,
  );
}

/** Whether journal and ledger have expired. It is then unknown which calls were made, so none may be repeated. */
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
  /** Whether an earlier attempt began the turn. */
  readonly resumed: boolean;
}

async function startRun(given: TurnStart): Promise<TurnRun> {
  const { sessions, reruns } = given.deps.features;
  const again = given.turn.rerun === undefined ? null : await reruns?.begin(given);
  const known = again?.runtime ?? given.runtime;
  const asked = given.turn.reply;
  const start = { ...given, runtime: asked ? { ...known, reply: askedReply(asked) } : known };
  const { deps, lease, runtime, live, slot, turn, resumed } = start;
  // The pinned baseline is used, so that a later attempt sends the same prompt even after a change of the configuration.
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
  // A former holder may have died before the beginning was in the log.
  if (resumed) writeMeanwhile(run, deps.log.append(live.address, [startedDraft(runtime, turn)]));
  if (turn.session) await sessions?.adopt(run);
  return run;
}

/* Prompt. */

/** Builds the prompt of the present step from the warm view, and asks for a compaction if it is too long. */
async function assemble(before: TurnRun): Promise<Outcome> {
  await beginTurnOnce(before);
  const { steering, compaction: compactions } = before.deps.features;
  // A turn that begins here has not taken in any events.
  const maySteer = before.step > 0 || before.turn.steered !== undefined;
  const steered = maySteer && steering ? await steering.steer(before) : before;
  if (steered.ending.kind === 'aborted') return { event: { type: 'ABORTED' }, run: steered };
  const isBegun = steered.compaction.step === steered.step;
  const counted = isBegun || !compactions ? steered : compactions.beginStep(steered);
  const begun = counted.resumed && compactions ? await compactions.replay(counted) : counted;
  const prompt = build(begun);
  const run = changed(begun, { prompt });
  const reason = compactions && mayCompact(run, prompt) ? compactions.reason(run, prompt) : null;
  if (reason) {
    const compaction = { ...run.compaction, reason };
    return { event: { type: 'OVER_BUDGET' }, run: changed(run, { compaction }) };
  }
  const fits = prompt.tokens.free >= 0 && run.live.view.bytes <= MAX_REQUEST_BYTES;
  if (fits || mayFit(run, prompt)) return { event: { type: 'PROMPT_READY' }, run };
  const message = nameLargest(run, prompt);
  return {
    event: { type: 'REFUSED' },
    run: changed(run, { ending: { kind: 'failed', code: 'context_overflow', message } }),
  };
}

/** Whether a compaction may be needed. Most prompts are far from full, and then no code of the feature runs. */
function mayCompact({ turn, policy, lease, live }: TurnRun, { tokens }: PromptRecord): boolean {
  const { view } = live;
  const isLarge = tokens.percent >= Math.min(WORTH_COMPACTING_PERCENT, policy.trigger * 100);
  const joins = turn.join === 'summary' && lease.record.turnNo === 0;
  return (
    isLarge ||
    joins ||
    view.bytes > MAX_REQUEST_BYTES ||
    policy.prune.eachTurn ||
    view.turn?.isToCompact === true
  );
}

async function compact(run: TurnRun): Promise<Outcome> {
  const { compaction } = run.deps.features;
  if (!compaction) throw new TroupeError('internal', 'nothing here compacts');
  return compaction.compact(run);
}

/** Whether a prompt that seems too long is sent anyway: the vendor decides, and its answer calibrates the count. */
function mayFit({ live }: TurnRun, { tokens }: PromptRecord): boolean {
  const { estimate, free } = tokens;
  const least = leastEstimate(estimate, live.view.anchor?.reported ?? 0);
  return least <= estimate + free && live.view.bytes <= MAX_REQUEST_BYTES;
}

function build(run: TurnRun): PromptRecord {
  const { deps, live, turn, runtime, baseline, model } = run;
  for (const draft of run.outputs) foldAhead(live.view, draft, deps.countTokens);
  const prompt = buildPrompt({
    view: live.view,
    conversation: live.address.conversation,
    agent: runtime.profile,
    baseline: { ...baseline, source: baseline.id },
    step: run.step + 1,
    model,
  });
  return { ...prompt, upTo: reachAt(turn, run.step) };
}

async function beginTurnOnce({ deps, live, turn, meanwhile }: TurnRun): Promise<void> {
  if (live.view.turn?.id === turn.id) return;
  const { id, upTo, inputs, live: items, join, baseline } = turn;
  const input = { id, upTo, inputs, live: items, join, baseline, ...promptRulesOf(turn) };
  live.isBeginning = true;
  try {
    await inSlices(deps.clock, beginTurnSteps(live.view, input), meanwhile.work);
  } finally {
    live.isBeginning = false;
  }
}

/* Model: one call, and the handling of its answer. */

const NOT_TRIED_AGAIN = { retryable: false, isAway: false, answered: 1 };

/**
 * Makes one model call and journals its answer once. The journalled answer counts, whichever process wrote it. A failed call
 * leaves an `error` event with the text so far. A retry sends the identical request.
 */
async function callModel(run: TurnRun): Promise<Outcome> {
  const { turn } = run;
  if (run.step === 0 && turn.approved) return callApproved(run, turn.approved);
  const before = run.resumed ? await openStep(run) : null;
  if (before !== null) {
    recordAgain(run, before);
    await written(run);
    return settle(run, before);
  }
  if (!(await takeCall(run, run.runtime.profile.provider))) return { event: { type: 'ABORTED' }, run };
  const asked = await askModel(run);
  if (asked.kind === 'aborted') return { event: { type: 'ABORTED' }, run };
  if (asked.kind === 'refused') return overBudget(run, asked.message);
  if (asked.kind === 'failed') return failCall(run, asked.failure, asked.sending);
  const { answer } = asked;
  if (endsTurn(run, answer)) return settle(run, lastAnswer(run, answer));
  const [entry] = await Promise.all([journalStep(run, answer), written(run)]);
  return settle(run, entry);
}

/**
 * Whether the answer need not be journalled, because the commit follows directly and a crash in between loses nothing else.
 * It must be journalled in a resumed turn, where a former holder may have an entry; with a session, which would give another
 * answer; if marks were removed from it, because only the journal has the original; and if its receipt is already written,
 * because its usage is then only in the journal.
 */
function endsTurn({ resumed, runtime, meanwhile }: TurnRun, { calls, original }: ModelAnswer): boolean {
  const isSession = runtime.provider.capabilities.sessionResumption;
  const hasReceipt = meanwhile.kept.receipts.length > 0;
  return !resumed && calls.length === 0 && original === undefined && !isSession && hasReceipt;
}

/** Keeps an answer that is not journalled. Its receipt gets the usage, which the journal has for other steps. */
function lastAnswer({ deps, runtime, meanwhile }: TurnRun, answer: ModelAnswer): ModelAnswer {
  const last = deps.redaction ? redactAnswer(deps.redaction, runtime.profile, answer) : answer;
  const { kept } = meanwhile;
  kept.answer = last;
  const sent = kept.receipts.pop();
  if (sent) kept.receipts.push({ ...sent, receipt: { ...sent.receipt, usage: last.usage } });
  return last;
}

/** Makes approved calls before the model is asked, as if it had requested them again. */
async function callApproved(run: TurnRun, calls: ToolCall[]): Promise<Outcome> {
  const given: ModelAnswer = { text: '', calls, stop: 'calls', usage: NO_USAGE };
  const [entry] = await Promise.all([journalStep(run, given), written(run)]);
  if ('sealed' in entry) return sealed(run, entry.sealed);
  return { event: { type: 'MODEL_CALLED' }, run: changed(run, { answer: entry }) };
}

/** Applies the journalled entry of the step, whichever process wrote it. */
function settle(run: TurnRun, entry: JournalEntry): Outcome {
  if ('sealed' in entry) return sealed(run, entry.sealed);
  const { meanwhile } = run;
  meanwhile.partial = '';
  meanwhile.usage = addUsage(meanwhile.usage, entry.usage);
  meanwhile.session.last = entry.session ?? null;
  meanwhile.session.compacted ||= entry.session?.compacted ?? false;
  const isRefusal = entry.stop === 'refusal';
  const { shown, suspected } = meanwhile.images;
  const told = shown.length + suspected.length > 0 ? learnRefused(run, isRefusal) : run;
  const next = changed(told, { answer: entry, failure: null, ...learn(run, entry) });
  if (isRefusal) return refused(next, entry);
  return { event: { type: entry.calls.length > 0 ? 'MODEL_CALLED' : 'MODEL_REPLIED' }, run: next };
}

/** Ends the turn as another holder of the lease has begun to end it. */
function sealed(run: TurnRun, ending: Ending): Outcome {
  const next = changed(run, { ending });
  if (ending.kind === 'aborted' && ending.by === 'interrupted')
    return { event: { type: 'ABORTED' }, run: next };
  if (ending.kind !== 'failed')
    throw new TroupeError('lease_lost', `turn ${run.turn.id} was ended by another process`);
  return { event: { type: 'MODEL_FAILED', failed: NOT_TRIED_AGAIN }, run: next };
}

/** Fails the turn, because a vendor's filter ended the answer. A retry would not help, and the text must not count as a reply. */
function refused(run: TurnRun, { text }: ModelAnswer): Outcome {
  run.meanwhile.partial = text;
  const message = 'the provider refused to answer this prompt';
  return {
    event: { type: 'MODEL_FAILED', failed: NOT_TRIED_AGAIN },
    run: changed(run, { answer: null, ending: { kind: 'failed', code: 'provider_refused', message } }),
  };
}

/** Fails the turn without a model call. A retry would be refused too, because only people can raise the budget. */
function overBudget(run: TurnRun, message: string): Outcome {
  const goOn = 'raise the budget in the agents file or wait for its next period, then ask again';
  const outputs = [stopDraft(run, { guard: 'budget', message, goOn })];
  return {
    event: { type: 'MODEL_FAILED', failed: NOT_TRIED_AGAIN },
    run: changed(run, { ending: { kind: 'failed', code: 'budget_exceeded', message } }, { outputs }),
  };
}

/** Writes the receipt again, because the crash may have come between the answer and its receipt. */
function recordAgain(run: TurnRun, journalled: JournalEntry): void {
  const { prompt, live } = run;
  if (!prompt) return;
  const delta = 'sealed' in journalled ? null : journalled.session?.delta;
  recordPrompt(run, { prompt: delta ? deltaOf(prompt, live.view, delta) : prompt });
}

/** Calibrates the token count by the reported usage. Figures of a scripted model are estimates and are ignored. */
function learn(run: TurnRun, { usage, doubt, kept }: ModelAnswer): Partial<Pick<TurnRun, 'last' | 'model'>> {
  if (kept) return {};
  const { deps, live, runtime, baseline } = run;
  const { session } = run.meanwhile;
  const { tenant, agent } = live.address;
  if (doubt !== undefined) deps.models.doubt(tenant, agent, doubt);
  if (!runtime.provider.capabilities.reportsUsage) return {};
  const isUntold = usage.input === 0;
  if (isUntold && doubt === undefined && !runtime.provider.capabilities.sessionResumption)
    deps.models.doubt(tenant, agent, null);
  // Usage that a call did not report is included in that of a later call of the turn.
  session.untold ||= isUntold;
  if (session.untold) return {};
  // The provider counted its compacted session, which differs from the view.
  if (session.compacted || session.base?.compacted) return {};
  const report = { reported: usage.input, kinds: countedKinds(live.view, baseline.body) };
  if (!isPlausible(report, run.model.window ?? runtime.profile.contextWindow)) {
    const counted = Object.values(report.kinds).reduce((sum, tokens) => sum + tokens, 0);
    deps.models.doubt(
      tenant,
      agent,
      `it reports an input of ${usage.input} tokens for a prompt of about ${counted}`,
    );
    return {};
  }
  live.view.anchor = report;
  return { last: report, model: deps.models.observe(tenant, runtime.profile, report) };
}

/** Whether the answer is words of an agent without a list of todos, so that nothing can prevent the end of the turn. */
function isPlainAnswer({ answer, runtime }: TurnRun): boolean {
  return answer !== null && !answer.fault && answer.text.trim() !== '' && !runtime.tools.has('todo');
}

/** Decides whether a turn may end with its present answer or takes another step. */
async function judgeAnswer(run: TurnRun): Promise<Outcome> {
  if (isPlainAnswer(run)) return { event: { type: 'ACCEPTED' }, run };
  const verdict = judge(run);
  if (verdict.kind === 'corrected') {
    await Promise.all([writeKept(run), written(run)]);
    return correct(run, verdict.drafts);
  }
  if (verdict.kind === 'failed') {
    const { code, message } = verdict.fault;
    return { event: { type: 'REFUSED' }, run: changed(run, { ending: { kind: 'failed', code, message } }) };
  }
  // The draft needs no position of a call, because a step without calls has no other guard event.
  const outputs = verdict.kind === 'given up' ? [stopDraft(run, verdict.stop)] : [];
  return { event: { type: 'ACCEPTED' }, run: changed(run, {}, { outputs }) };
}

/* Commit: everything that the turn did, in one fenced write. */

/**
 * Ends a turn in one fenced compare-and-set of index, snapshot and all outputs. Nothing is published before it, and nothing at
 * all if the fence has changed. If an abort was requested, the write is refused and the turn ends as aborted, so that no reply
 * follows an acknowledged abort.
 */
async function commitTurn(before: TurnRun): Promise<Outcome> {
  const { lease } = before;
  await Promise.all(before.meanwhile.writing);
  const run = await withLastWords(before);
  const isAborted = lease.record.abort === run.turn.id;
  if (run.ending.kind !== 'aborted' && !isAborted) {
    const committed = await lease.step({ ...(await stepOf(run)), expect: { notAborted: true } });
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
  const { steering } = run.deps.features;
  return steering && sealed.turn.steered ? steering.showSteered(sealed, 'all') : sealed;
}

/** The cause of an abort: a command, an interrupting event, or the cancellation of the turn's task. */
async function stoppedBy(run: TurnRun): Promise<string> {
  const { ending } = run;
  if (ending.kind === 'aborted' && (ending.by === 'interrupted' || ending.by === CANCELLED)) return ending.by;
  if (await run.deps.features.steering?.isInterrupted(run)) return 'interrupted';
  return (await isForCancelledTask(run)) ? CANCELLED : 'command';
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

/** Whether another turn follows, so that this reply is not the last one on the task. */
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
  const { sessions, workflows } = run.deps.features;
  const advanced = isRerun || live.tasks.runs.size === 0 ? null : await workflows?.advance(run);
  const isDone = run.ending.kind === 'done';
  const own = [...outputsOf(run), ...endingOf(run), ...ends.events];
  const posts = [...(isDone ? run.outgoing : []), ...ends.outgoing, ...(advanced ?? [])];
  const patch: ActorPatch = {
    processed: reachOf(turn),
    abort: null,
    state: {
      turnNo: lease.record.turnNo + 1,
      lastTurn: turn.id,
      snapshot: saveAgent(nextAgent(live.state, commitEvent(run))),
      machineVersion: AGENT_MACHINE_VERSION,
      turn: null,
      ...(sessions && hasSession(run) ? sessions.patch(run) : NO_SESSION),
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

/** Whether the lease is no longer needed: no timer is due, and the folds need not be stored. */
function mayRest({ deps, live, lease }: TurnRun): boolean {
  const now = deps.clock.now();
  if (lease.record.timers.some(({ at }) => at <= now)) return false;
  const { checkpoints } = deps.features;
  return !checkpoints || !hasGrown(live, checkpoints.folds.least) || !checkpoints.isWorthStoring(live);
}

const NO_SESSION = { session: null, cursor: null };

function hasSession({ runtime, meanwhile }: TurnRun): boolean {
  return runtime.provider.capabilities.sessionResumption || meanwhile.session.base !== null;
}

/** Whether the turn may open, end or wait for tasks. */
function hasTasks({ live, outputs }: TurnRun): boolean {
  const { tasks, thread } = live.tasks;
  return thread !== null || tasks.size > 0 || outputs.length > 0;
}

const NO_ENDS: TaskEnds = { events: [], outgoing: [] };

/** Kinds that begin work for others. They are published only if the turn ends as done. */
const BEGINNINGS: readonly EventDraft['kind'][] = [
  'handoff',
  'delegation.opened',
  'question',
  'approval.requested',
];

/** The outputs to publish. A failed or aborted turn makes no handoffs and opens no tasks. */
function outputsOf({ ending, outputs }: TurnRun): readonly EventDraft[] {
  return ending.kind === 'done' ? outputs : outputs.filter(({ kind }) => !BEGINNINGS.includes(kind));
}

function liveTimers({ lease, live }: TurnRun): Timer[] {
  const { tasks } = live.tasks;
  return lease.record.timers.filter(({ task }) => task === undefined || !tasks.get(task)?.end);
}

/** What the agent waits for after this turn. Waits for people take precedence: only people need a reminder. */
function waitsFor(run: TurnRun): WaitsFor | null {
  const { live } = run;
  if (!hasTasks(run)) return null;
  const kinds = new Set<string>(openTasks(live.tasks, live.address.agent).map(({ kind }) => kind));
  for (const { kind } of outputsOf(run)) kinds.add(kind);
  if (kinds.has('approval') || kinds.has('approval.requested')) return 'approval';
  if (kinds.has('question')) return 'answer';
  return kinds.has('delegation') || kinds.has('delegation.opened') ? 'delegation' : null;
}

/** The end of the turn. All endings share one id, so a turn can have only one. */
function endingOf(run: TurnRun): EventDraft[] {
  const { turn, ending, answer, step, last, meanwhile } = run;
  // A complete answer was already streamed to watchers when the turn was aborted.
  const partial = answer?.text ?? meanwhile.partial;
  const covers = coversOf(turn);
  const end = ownDraft(run, 'end');
  const timed = run.watch.times();
  const times = timed && { times: timed };
  if (ending.kind === 'aborted') {
    const body = { covers, by: ending.by, partial, ...takenBy(meanwhile), ...times };
    return [{ ...end, kind: 'turn.aborted', body }];
  }
  if (ending.kind === 'failed') {
    const { code, message } = ending;
    const body = { covers, code, message, partial: shown(code, partial), ...takenBy(meanwhile), ...times };
    return [{ ...end, kind: 'turn.failed', body }];
  }
  const done: EventDraft = {
    ...end,
    kind: 'turn.done',
    body: {
      covers,
      steps: step + (answer ? 1 : 0),
      usage: meanwhile.usage,
      ...(meanwhile.others && { others: meanwhile.others }),
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

function takenBy({ usage, others }: TurnRun['meanwhile']): { usage?: Usage; others?: OtherCalls[] } {
  return { ...(usage.input + usage.output > 0 && { usage }), ...(others && { others }) };
}

function modeOf({ context = {} }: PinnedTurn): { context?: EventContext } {
  const { mode, run } = context;
  if (mode === undefined && run === undefined) return {};
  return { context: { ...(mode && { mode }), ...(run !== undefined && { run }) } };
}

/** The text of a failed turn for prompts. A reply that was too long is cut; the `error` event has all of it. */
function shown(code: string, partial: string): string {
  return code === 'provider_reply_too_long' ? preview(partial).text : partial;
}

function dataOf(answer: ModelAnswer | null): { data?: unknown } {
  return answer && 'data' in answer ? { data: answer.data } : {};
}

/**
 * Seals a turn before it ends, because a former holder of the lease may still be running it. The journalled steps become
 * outputs, with the known results of their calls. After the last one, the ending itself is journalled, once. A former holder
 * that reaches this step finds the ending and makes no calls that would be missing in the log.
 */
async function sealTurn(before: TurnRun): Promise<TurnRun> {
  const { ending } = before;
  let run = changed(before, { givenUp: true });
  for (;;) {
    const { steering, compaction } = run.deps.features;
    run = steering ? await steering.showSteered(run, 'this') : run;
    run = compaction ? await compaction.replay(run) : run;
    const entry = (await openStep(run)) ?? (await journalStep(run, { sealed: ending }));
    if ('sealed' in entry) break;
    run = changed(run, { answer: entry });
    if (entry.calls.length > 0) {
      ({ run } = await runCalls(run));
      continue;
    }
    // A rejected answer is followed by more steps.
    const verdict = judge(run);
    if (verdict.kind !== 'corrected') break;
    ({ run } = correct(run, verdict.drafts));
    run.meanwhile.partial = '';
  }
  // The recorded calls may have changed the ending, but the turn keeps the one with which it was sealed.
  return changed(run, { ending });
}
