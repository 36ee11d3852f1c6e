import { addUsage, NO_USAGE, type ToolCall } from '../../events/index.ts';
import { countedKinds, deltaOf, isPlausible } from '../../context/index.ts';
import { TroupeError } from '../../errors.ts';
import type { BudgetRefusal } from '../budget/ledger.ts';
import { journalStep, openStep } from '../steering/step-journal.ts';
import { stopDraft } from '../tasks/call-effects.ts';
import { askModel, recordPrompt } from './ask-model.ts';
import { takeCall } from './back-off.ts';
import { failCall } from './fail-call.ts';
import { redactAnswer } from './redact-turn.ts';
import { learnRefused } from './refused-images.ts';
import {
  changed,
  type Ending,
  type JournalEntry,
  type ModelAnswer,
  type Outcome,
  type TurnRun,
  written,
} from './turn-run.ts';

/** A failure that ends the turn. */
const NOT_TRIED_AGAIN = { retryable: false, isAway: false, answered: 1 };

/**
 * Makes one model call and journals its answer once. The journalled answer counts, whichever process wrote it. A failed
 * call leaves an `error` event with the text so far; a retry sends the identical request.
 */
export async function callModel(run: TurnRun): Promise<Outcome> {
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
  if (asked.kind === 'refused') return overBudget(run, asked.refusal);
  if (asked.kind === 'failed') return failCall(run, asked.failure, asked.sending);
  const { answer } = asked;
  if (endsTurn(run, answer)) return settle(run, lastAnswer(run, answer));
  const [entry] = await Promise.all([journalStep(run, answer), written(run)]);
  return settle(run, entry);
}

/**
 * Whether the commit follows, so that the answer need not be journalled: nothing happens between the two that a crash could lose.
 * A former holder's entry could be there; a session has heard its answer, so that a second one would be another; what an answer
 * was before its marks were taken out is kept in the journal alone, and so is its usage if the receipt is written already.
 */
function endsTurn({ resumed, runtime, meanwhile }: TurnRun, { calls, original }: ModelAnswer): boolean {
  const isSession = runtime.provider.capabilities.sessionResumption;
  const hasReceipt = meanwhile.kept.receipts.length > 0;
  return !resumed && calls.length === 0 && original === undefined && !isSession && hasReceipt;
}

/** Its usage is kept with the receipt, where that of other steps is in the journal. */
function lastAnswer({ deps, runtime, meanwhile }: TurnRun, answer: ModelAnswer): ModelAnswer {
  const last = deps.redaction ? redactAnswer(deps.redaction, runtime.profile, answer) : answer;
  const { kept } = meanwhile;
  kept.answer = last;
  const sent = kept.receipts.pop();
  if (sent) kept.receipts.push({ ...sent, receipt: { ...sent.receipt, usage: last.usage } });
  return last;
}

/** Approved calls are made before the model is asked, as if it had asked for them again. */
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
  meanwhile.session.compacted ||= entry.session?.compacted ?? false;
  const isRefusal = entry.stop === 'refusal';
  const { shown, suspected } = meanwhile.images;
  const told = shown.length + suspected.length > 0 ? learnRefused(run, isRefusal) : run;
  const next = changed(told, { answer: entry, failure: null, ...learn(run, entry) });
  if (isRefusal) return refused(next, entry);
  return { event: { type: entry.calls.length > 0 ? 'MODEL_CALLED' : 'MODEL_REPLIED' }, run: next };
}

/** Another holder of the lease has begun to end this turn. */
function sealed(run: TurnRun, ending: Ending): Outcome {
  const next = changed(run, { ending });
  if (ending.kind === 'aborted' && ending.by === 'interrupted')
    return { event: { type: 'ABORTED' }, run: next };
  if (ending.kind !== 'failed')
    throw new TroupeError('lease_lost', `turn ${run.turn.id} was ended by another process`);
  return { event: { type: 'MODEL_FAILED', failed: NOT_TRIED_AGAIN }, run: next };
}

/** A vendor's filter ended the answer: a retry would not help, and the text must not count as a reply. */
function refused(run: TurnRun, { text }: ModelAnswer): Outcome {
  run.meanwhile.partial = text;
  const message = 'the provider refused to answer this prompt';
  return {
    event: { type: 'MODEL_FAILED', failed: NOT_TRIED_AGAIN },
    run: changed(run, { answer: null, ending: { kind: 'failed', code: 'provider_refused', message } }),
  };
}

/** The model was not called. A retry would be refused too; only people can raise the budget. */
function overBudget(run: TurnRun, { message }: BudgetRefusal): Outcome {
  const goOn = 'raise the budget in the agents file or wait for its next period, then ask again';
  const outputs = [stopDraft(run, { guard: 'budget', message, goOn })];
  return {
    event: { type: 'MODEL_FAILED', failed: NOT_TRIED_AGAIN },
    run: changed(run, { ending: { kind: 'failed', code: 'budget_exceeded', message } }, { outputs }),
  };
}

/** Writes the receipt again: the crash may have come between the answer and its receipt. */
function recordAgain(run: TurnRun, journalled: JournalEntry): void {
  const { prompt, live } = run;
  if (!prompt) return;
  const delta = 'sealed' in journalled ? null : journalled.session?.delta;
  recordPrompt(run, { prompt: delta ? deltaOf(prompt, live.view, delta) : prompt });
}

/** Calibrates the token count by the reported usage. The figures of a scripted model are guesses and are ignored. */
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
  // Usage that is missing from its own call is included in a later call of the turn.
  session.untold ||= isUntold;
  if (session.untold) return {};
  // The provider counted its own shortened memory, which is no longer our view.
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
