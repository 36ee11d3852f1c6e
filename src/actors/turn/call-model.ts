import { addUsage, NO_USAGE, type Reasoning, type ToolCall } from '../../events/index.ts';
import type { AgentEvent } from '../../machines/agent-lifecycle.ts';
import type { ModelEvent, ModelFailure, ModelRequest, ResponseName } from '../../providers/provider.ts';
import { countedKinds, deltaOf, isPlausible, limitIn, receiptOf } from '../../context/index.ts';
import { policyOf, TroupeError } from '../../errors.ts';
import type { CallEnd } from '../budget/call-amount.ts';
import {
  countCost,
  type Paid,
  type PaidCall,
  paidCall,
  budgetPartsOf,
  placeOf,
} from '../budget/paid-call.ts';
import type { BudgetRefusal } from '../budget/ledger.ts';
import { checkReply } from './check-reply.ts';
import { withImages } from './load-images.ts';
import { policyFor } from '../compaction/compaction-policy.ts';
import { answerSession, askSession, hearSession, loseSession } from '../sessions/ask-session.ts';
import { cacheKeyOf } from '../sessions/settle-session.ts';
import { isNewFailure, planRetry, takeCall } from './back-off.ts';
import { journalStep, openStep } from '../steering/step-journal.ts';
import type { CallEnded } from '../engine/span-facts.ts';
import { stopDraft } from '../tasks/call-effects.ts';
import {
  type Ending,
  type JournalEntry,
  type ModelAnswer,
  type MutableTurnRun,
  ownDraft,
  type TurnRun,
  writeMeanwhile,
  written,
} from './turn-run.ts';
import type { CallWatch } from './watch-turn.ts';

/** A failure that ends the turn. */
const NOT_TRIED_AGAIN = { retryable: false, isAway: false, answered: 1 };

/**
 * One model call, journalled once. The journal decides what was answered, whichever process wrote it. A failed call leaves
 * an `error` event with the text so far; a retry sends the identical request.
 */
export async function callModel(run: MutableTurnRun): Promise<AgentEvent> {
  const { turn } = run;
  if (run.step === 0 && turn.approved) return callApproved(run, turn.approved);
  const before = run.resumed ? await openStep(run) : null;
  if (before === null && !(await takeCall(run, run.runtime.profile.provider))) return { type: 'ABORTED' };
  if (before !== null) recordAgain(run, before);
  const outcome = before === null ? await callOnce(run) : { kind: 'answered' as const, answer: before };
  if (outcome.kind === 'aborted') return { type: 'ABORTED' };
  if (outcome.kind === 'refused') return overBudget(run, outcome.refusal);
  if (outcome.kind === 'failed') return fail(run, outcome.failure);
  const [entry] = await Promise.all([before ?? journalStep(run, outcome.answer), written(run)]);
  if ('sealed' in entry) return sealed(run, entry.sealed);
  const answer = entry;
  run.answer = answer;
  run.failure = null;
  run.meanwhile.partial = '';
  run.meanwhile.usage = addUsage(run.meanwhile.usage, answer.usage);
  run.session.compacted ||= answer.session?.compacted ?? false;
  learn(run, answer);
  if (answer.stop === 'refusal' && answer.calls.length === 0) return refused(run, answer);
  return answer.calls.length > 0 ? { type: 'MODEL_CALLED' } : { type: 'MODEL_REPLIED' };
}

/** Approved calls are made before the model is asked, as if it had asked for them again. */
async function callApproved(run: MutableTurnRun, calls: ToolCall[]): Promise<AgentEvent> {
  const given: ModelAnswer = { text: '', calls, stop: 'calls', usage: NO_USAGE };
  const [entry] = await Promise.all([journalStep(run, given), written(run)]);
  if ('sealed' in entry) return sealed(run, entry.sealed);
  run.answer = entry;
  return { type: 'MODEL_CALLED' };
}

/** Another holder of the lease has begun to end this turn. */
function sealed(run: MutableTurnRun, ending: Ending): AgentEvent {
  if (ending.kind === 'aborted' && ending.by === 'interrupted') {
    run.ending = ending;
    return { type: 'ABORTED' };
  }
  if (ending.kind !== 'failed')
    throw new TroupeError('lease_lost', `turn ${run.turn.id} was ended by another`);
  run.ending = ending;
  return { type: 'MODEL_FAILED', failed: NOT_TRIED_AGAIN };
}

/** A vendor's filter ended the answer: a retry would not help, and the text must not count as a reply. */
function refused(run: MutableTurnRun, { text }: ModelAnswer): AgentEvent {
  run.answer = null;
  run.meanwhile.partial = text;
  run.ending = {
    kind: 'failed',
    code: 'provider_refused',
    message: 'the provider refused to answer this prompt',
  };
  return { type: 'MODEL_FAILED', failed: NOT_TRIED_AGAIN };
}

/** The model was not called. A retry would be refused too; only people can raise the budget. */
function overBudget(run: MutableTurnRun, { message }: BudgetRefusal): AgentEvent {
  const goOn = 'raise the budget in the agents file or wait for its next period, then ask again';
  run.outputs = [...run.outputs, stopDraft(run, { guard: 'budget', message, goOn })];
  run.ending = { kind: 'failed', code: 'budget_exceeded', message };
  return { type: 'MODEL_FAILED', failed: NOT_TRIED_AGAIN };
}

/** A lost session is not a failed try: the request goes to another session, in the end to a new one. */
async function callOnce(
  run: MutableTurnRun,
): Promise<StreamOutcome | Extract<Paid<never>, { kind: 'refused' }>> {
  for (let round = 1; ; round += 1) {
    run.sending = askSession(run);
    const asked = run.sending.session?.request.kind ?? 'start';
    const paid = await paidCall(budgetPartsOf(run), callOf(run, round), () => {
      run.session.open = null;
      run.session.touched ||= asked !== 'start';
      return measured(run);
    });
    if (paid.kind === 'aborted' && !run.lease.signal.aborted) throw run.deps.stopping.reason;
    if (paid.kind !== 'made') return paid;
    countCost(run.deps.metrics, run.runtime, paid.spent, run.live.address.tenant);
    const { outcome } = paid;
    const isLost = outcome.kind === 'failed' && outcome.failure.code === 'provider_session_lost';
    if (!isLost || asked === 'start') return outcome;
    if (asked === 'resume') loseSession(run, outcome.failure.message);
  }
}

/** The fence is part of the id: a try that is repeated after a crash may be paid for twice. */
function callOf(run: TurnRun, round: number): PaidCall {
  const { turn, step, lease, failure, runtime, prompt } = run;
  const { maxOutputTokens } = runtime.profile;
  return {
    id: `${turn.id}/${step}/${lease.record.fence}.${(failure?.tries ?? 0) + 1}.${round}`,
    place: placeOf(run),
    asked: { input: prompt?.tokens.estimate ?? 0, maxOutputTokens },
    price: runtime.price,
  };
}

type StreamOutcome =
  | { kind: 'answered'; answer: ModelAnswer; response?: ResponseName }
  | { kind: 'failed'; failure: ModelFailure }
  | { kind: 'aborted' };

async function measured(run: MutableTurnRun): Promise<{ outcome: StreamOutcome; end: CallEnd }> {
  const { metrics, clock } = run.deps;
  const { provider } = run.runtime.profile;
  const began = clock.monotonic();
  const call = run.watch.call({
    purpose: 'turn',
    step: run.step + 1,
    tries: (run.failure?.tries ?? 0) + 1,
    messages: run.sending?.prompt.messages ?? [],
    server: run.runtime.provider.server,
  });
  const heard = await call.within(() => stream(run, call));
  const outcome = heard.kind === 'answered' ? await checkReply(run.runtime.reply, heard) : heard;
  // The answer is discarded; its tokens still count as spent.
  if (heard.kind === 'answered' && outcome.kind === 'failed')
    run.meanwhile.usage = addUsage(run.meanwhile.usage, heard.answer.usage);
  metrics.time('model_call', { provider }, clock.monotonic() - began);
  const ended = outcome.kind === 'failed' ? outcome.failure.code : outcome.kind;
  metrics.count('model_calls', { tenant: run.live.address.tenant, provider, outcome: ended });
  call.end(toldOf(outcome));
  return { outcome, end: endOf(run, heard) };
}

function toldOf(outcome: StreamOutcome): CallEnded {
  if (outcome.kind === 'answered') {
    const { answer, response } = outcome;
    return { kind: 'answered', ...answer, ...(response && { response }) };
  }
  return outcome.kind === 'failed' ? { kind: 'failed', code: outcome.failure.code } : outcome;
}

/** Built before the reply is checked: a discarded reply was paid for too. */
function endOf({ deps, runtime, meanwhile }: TurnRun, heard: StreamOutcome): CallEnd {
  const words = deps.countTokens(meanwhile.partial);
  if (heard.kind === 'aborted') return { kind: 'aborted', heard: words };
  if (heard.kind === 'failed') return { kind: 'failed', code: heard.failure.code, heard: words };
  const { usage } = heard.answer;
  return {
    kind: 'answered',
    usage,
    heard: words,
    tellsLater: runtime.provider.capabilities.sessionResumption && heard.answer.doubt === undefined,
  };
}

async function stream(run: MutableTurnRun, watch: CallWatch): Promise<StreamOutcome> {
  const { deps, live, turn, lease, runtime } = run;
  let text = '';
  let index = 0;
  let reasoning: Reasoning | undefined;
  const calls: ToolCall[] = [];
  const tell = (delta: string) => {
    const at = { turn: turn.id, attempt: turn.attempt, step: run.step + 1, index: index++ };
    try {
      deps.onDelta({ address: live.address, ...at, text: delta });
    } catch (error) {
      deps.onWarning(error, 'stream watcher');
    }
  };
  const request = await withImages(run, requestOf(run));
  for await (const event of runtime.provider.stream(request, { signal: lease.signal })) {
    switch (event.type) {
      case 'start':
        index = 0;
        break;
      case 'text':
        recordPrompt(run);
        watch.heard();
        text += event.delta;
        tell(event.delta);
        break;
      case 'reasoning':
        watch.heard();
        reasoning = event.reasoning;
        break;
      case 'call':
        watch.heard();
        calls.push(event.call);
        break;
      case 'session':
      case 'compacted':
        hearSession(run, event);
        break;
      case 'done':
      case 'failed':
      case 'aborted':
        // A prompt that is refused as too long may be sent again shorter; `fail` records the others.
        if (event.type !== 'failed') recordPrompt(run);
        run.meanwhile.partial = text;
        return finished(run, event, { text, calls, reasoning });
    }
  }
  run.meanwhile.partial = text;
  return {
    kind: 'failed',
    failure: { code: 'provider_truncated', message: 'the provider ended without a result' },
  };
}

function finished(
  run: MutableTurnRun,
  event: Extract<ModelEvent, { type: 'done' | 'failed' | 'aborted' }>,
  said: Pick<ModelAnswer, 'text' | 'calls' | 'reasoning'>,
): StreamOutcome {
  if (event.type === 'aborted') return { kind: 'aborted' };
  if (event.type === 'failed') return { kind: 'failed', failure: event.error };
  return {
    kind: 'answered',
    answer: {
      ...said,
      stop: event.stop,
      usage: event.usage,
      ...(event.doubt !== undefined && { doubt: event.doubt }),
      ...answerSession(run, event),
    },
    ...(event.response && { response: event.response }),
  };
}

function requestOf(run: TurnRun): ModelRequest {
  const { sending, runtime, live, turn } = run;
  if (!sending) throw new Error('a model is called only with an assembled prompt');
  const { prompt, session } = sending;
  const { conversation, agent } = live.address;
  return {
    model: runtime.profile.model,
    messages: prompt.messages,
    tools: prompt.tools,
    breakpoints: prompt.breakpoints,
    maxOutputTokens: runtime.profile.maxOutputTokens,
    cacheKey: cacheKeyOf(run),
    ...(session && { session: session.request }),
    ...(runtime.reply && { replySchema: runtime.reply.schema }),
    trace: { conversation, agent, turn: turn.id, step: run.step + 1, call: (run.failure?.tries ?? 0) + 1 },
  };
}

/** Records one prompt per step: the accepted one, or the last refused one. */
function recordPrompt(run: MutableTurnRun): void {
  const { deps, live } = run;
  const prompt = run.sending?.prompt;
  if (!prompt || prompt === run.recorded) return;
  run.recorded = prompt;
  const now = deps.clock.now();
  writeMeanwhile(run, deps.store.putReceipt(live.address.tenant, receiptOf(prompt), now));
}

/** Writes the receipt again: the crash may have come between the answer and its receipt. */
function recordAgain(run: MutableTurnRun, journalled: JournalEntry): void {
  const { prompt, live } = run;
  const session = 'sealed' in journalled ? undefined : journalled.session;
  if (!prompt) return;
  run.sending = { prompt: session?.delta ? deltaOf(prompt, live.view, session.delta) : prompt };
  recordPrompt(run);
}

/** Calibrates the token count by the reported usage. The figures of a scripted model are guesses and are ignored. */
function learn(run: MutableTurnRun, { usage, doubt }: ModelAnswer): void {
  const { deps, live, runtime, baseline } = run;
  const { tenant, agent } = live.address;
  if (doubt !== undefined) deps.models.doubt(tenant, agent, doubt);
  if (!runtime.provider.capabilities.reportsUsage) return;
  const isUntold = usage.input === 0;
  if (isUntold && doubt === undefined && !runtime.provider.capabilities.sessionResumption)
    deps.models.doubt(tenant, agent, null);
  // Usage that is missing from its own call is included in a later call of the turn.
  run.session.untold ||= isUntold;
  if (run.session.untold) return;
  // The provider counted its own shortened memory, which is no longer our view.
  if (run.session.compacted || run.session.base?.compacted) return;
  const report = { reported: usage.input, kinds: countedKinds(live.view, baseline.body) };
  if (!isPlausible(report, run.model.window ?? runtime.profile.contextWindow)) {
    const counted = Object.values(report.kinds).reduce((sum, tokens) => sum + tokens, 0);
    deps.models.doubt(tenant, agent, `input is ${usage.input}, and what was sent has some ${counted}`);
    return;
  }
  run.last = report;
  live.view.anchor = report;
  run.model = deps.models.observe(tenant, runtime.profile, report);
}

async function fail(run: MutableTurnRun, failure: ModelFailure): Promise<AgentEvent> {
  const { deps, live, lease } = run;
  // No retry can succeed until an operator acts: the turn stays pinned, and other agents go on.
  if (policyOf(failure.code) === 'operator') throw new TroupeError(failure.code, failure.message);
  const before = run.failure;
  const failed = planRetry(run, failure);
  const { code, message, tries, answered, wait, awayFrom } = failed;
  run.failure = failed;
  run.ending = { kind: 'failed', code, message };
  if (isNewFailure(before, failed)) {
    const retryUntil = wait?.until ?? undefined;
    await deps.log.append(live.address, [
      {
        // The id uses the fence, not the attempt: an orderly stop does not count as an attempt.
        ...ownDraft(run, `error:${lease.record.fence}.${run.step}.${tries}`),
        kind: 'error',
        body: {
          code,
          message,
          step: run.step + 1,
          partial: run.meanwhile.partial,
          ...(retryUntil !== undefined && { retryUntil }),
        },
      },
    ]);
  }
  if (failure.code === 'context_overflow' && mayRecover(run, failure)) {
    // A shorter prompt is a new call, so the refusal does not count as a try.
    run.failure = { ...failed, answered: before?.answered ?? 0 };
    return { type: 'OVERFLOWED' };
  }
  recordPrompt(run);
  return {
    type: 'MODEL_FAILED',
    failed: { retryable: wait !== null, isAway: awayFrom !== null, answered },
  };
}

/** Allowed once per step. The next prompt must be shorter; the refusal may say by how much. */
function mayRecover(run: MutableTurnRun, { message }: ModelFailure): boolean {
  const { compaction, prompt, runtime, live, deps } = run;
  if (compaction.overflowed || !prompt) return false;
  const named = limitIn(message)?.window;
  // If the refusal names no window, the refused size is the upper bound, for this turn only.
  const guessed = prompt.tokens.estimate + prompt.tokens.reserved;
  run.model =
    named === undefined
      ? { ...run.model, window: Math.min(guessed, run.model.window ?? guessed) }
      : deps.models.learnWindow(live.address.tenant, runtime.profile, named);
  run.policy = policyFor(runtime, run.model);
  run.compaction = { ...compaction, overflowed: true, tried: false, reason: 'overflow' };
  return true;
}
