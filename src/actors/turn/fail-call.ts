import { tellAway } from './silent-server.ts';
import { limitIn } from '../../context/index.ts';
import { policyOf, TroupeError } from '../../base/errors.ts';
import { backoffMs, type ModelFailure } from '../../providers/provider.ts';
import { policyFor } from './model-window.ts';
import type { Sending } from './session-run.ts';
import { recordPrompt } from './ask-model.ts';
import { leaveImagesOut } from './images.ts';
import { changed, type FailedCall, type Outcome, ownDraft, type TurnRun, written } from './turn-run.ts';

/** Logs a failed call with the text so far, and decides whether it is retried, shortened, or ends the turn. */
export async function failCall(run: TurnRun, failure: ModelFailure, sending: Sending): Promise<Outcome> {
  // No retry can succeed until an operator acts: the turn stays pinned, and other agents go on.
  if (policyOf(failure.code) === 'operator') throw new TroupeError(failure.code, failure.message);
  const without = leaveImagesOut(run, failure);
  if (without) return sendWithoutImages(without, failure);
  const failed = planRetry(run, failure);
  const { code, message, answered, wait, awayFrom } = failed;
  if (isNewFailure(run.failure, failed)) await logFailure(run, failed);
  tellAway(run, failure);
  const next = changed(run, { failure: failed, ending: { kind: 'failed', code, message } });
  const shortened = code === 'context_overflow' ? shorten(next, failure) : null;
  if (shortened) {
    // A shorter prompt is a new call, so the refusal does not count as a try.
    const uncounted = { ...failed, answered: run.failure?.answered ?? 0 };
    return { event: { type: 'OVERFLOWED' }, run: changed(shortened, { failure: uncounted }) };
  }
  recordPrompt(run, sending);
  // Somebody may want to see it while the call waits to be made again.
  await written(run);
  return {
    event: {
      type: 'MODEL_FAILED',
      failed: { retryable: wait !== null, isAway: awayFrom !== null, answered },
    },
    run: next,
  };
}

/** Another request, so the refusal does not count as a try. */
async function sendWithoutImages(
  { run, count }: { run: TurnRun; count: number },
  failure: ModelFailure,
): Promise<Outcome> {
  const answered = run.failure?.answered ?? 0;
  const now = run.deps.clock.now();
  const what = count === 1 ? 'an image' : `${count} images`;
  const failed: FailedCall = {
    ...planRetry(run, failure),
    message: `${failure.message} (sent again without ${what})`,
    answered,
    awayFrom: null,
    wait: { ms: 0, next: now, until: null },
  };
  await logFailure(run, failed);
  return {
    event: { type: 'MODEL_FAILED', failed: { retryable: true, isAway: false, answered } },
    run: changed(run, { failure: failed }),
  };
}

async function logFailure(run: TurnRun, { code, message, tries, wait }: FailedCall): Promise<void> {
  const { deps, live, lease, step, meanwhile } = run;
  const retryUntil = wait?.until ?? undefined;
  await deps.log.append(live.address, [
    {
      // The id uses the fence, not the attempt: an orderly stop does not count as an attempt.
      ...ownDraft(run, `error:${lease.record.fence}.${step}.${tries}`),
      kind: 'error',
      body: {
        code,
        message,
        step: step + 1,
        partial: meanwhile.partial,
        ...(retryUntil !== undefined && { retryUntil }),
      },
    },
  ]);
}

/** Asks for a shorter prompt, once per step; null if that was done before. The refusal may name the window. */
function shorten(run: TurnRun, { message }: ModelFailure): TurnRun | null {
  const { compaction, prompt, runtime, live, deps } = run;
  if (compaction.overflowed || !prompt || !deps.features.compaction) return null;
  const named = limitIn(message)?.window;
  // If the refusal names no window, the refused size is the upper bound, for this turn only.
  const guessed = prompt.tokens.estimate + prompt.tokens.reserved;
  const model =
    named === undefined
      ? { ...run.model, window: Math.min(guessed, run.model.window ?? guessed) }
      : deps.models.learnWindow(live.address.tenant, runtime.profile, named);
  return changed(run, {
    model,
    policy: policyFor(runtime, model),
    compaction: { ...compaction, overflowed: true, tried: false, reason: 'overflow' },
  });
}

/**
 * Whether and when a failed call is made again. The machine counts tries that a server has answered. A server that is away
 * may be restarting or loading a model: it is retried until `patienceMs` is over, with the last try at its end.
 */
function planRetry(run: TurnRun, failure: ModelFailure): FailedCall {
  const before = run.failure;
  const now = run.deps.clock.now();
  const tries = (before?.tries ?? 0) + 1;
  const awayFrom = awaySince(run, failure);
  return {
    ...failure,
    tries,
    answered: (before?.answered ?? 0) + (awayFrom === null ? 1 : 0),
    since: before?.since ?? now,
    awayFrom,
    wait: planWait(run, failure, { tries, awayFrom, now }),
  };
}

/** Start of the server's present absence, monotonic ms; null if it answers. */
function awaySince({ deps, runtime, failure: before }: TurnRun, failure: ModelFailure): number | null {
  const isAway = failure.isAway === true && policyOf(failure.code) === 'retry' && runtime.patienceMs > 0;
  return isAway ? (before?.awayFrom ?? deps.clock.monotonic()) : null;
}

function planWait(
  { deps: { clock, random }, runtime: { patienceMs } }: TurnRun,
  failure: ModelFailure,
  { tries, awayFrom, now }: { tries: number; awayFrom: number | null; now: number },
): FailedCall['wait'] {
  const left = awayFrom === null ? Infinity : awayFrom + patienceMs - clock.monotonic();
  const pause = backoffMs(failure, tries, random);
  if (pause === null || left <= 0) return null;
  const ms = Math.min(pause, left);
  return { ms, next: Math.round(now + ms), until: awayFrom === null ? null : Math.round(now + left) };
}

/** An absence is reported once, and again when the error message changes. */
function isNewFailure(before: FailedCall | null, { awayFrom, message, wait }: FailedCall): boolean {
  if (awayFrom === null || wait === null) return true;
  return before === null || before.awayFrom === null || before.message !== message;
}

/**
 * Waits before the next try of the same request; the lease is renewed meanwhile. A restart begins the count again. Whoever
 * waits for a server that is away leaves its slot to others.
 */
export async function backOff(run: TurnRun): Promise<Outcome> {
  const { deps, failure, lease, slot } = run;
  if (!failure) return { event: { type: 'RETRY_DUE' }, run };
  // A stopping process does not wait: its successor starts the step again.
  const ended = AbortSignal.any([lease.signal, deps.stopping]);
  if (failure.awayFrom !== null) await slot.leave();
  await deps.clock.sleep(failure.wait?.ms ?? 0, ended);
  await slot.regain(ended);
  if (lease.signal.aborted) return { event: { type: 'ABORTED' }, run };
  const { provider } = run.runtime.profile;
  deps.metrics.count('model_retries', { provider, code: failure.code });
  return { event: { type: 'RETRY_DUE' }, run: changed(run, { ending: { kind: 'done' } }) };
}

/** Waits for a call to fit the provider's rate limit. Returns false if the turn was stopped meanwhile. */
export async function takeCall({ deps, live, lease }: TurnRun, provider: string): Promise<boolean> {
  for (;;) {
    const waitMs = await deps.admission.takeCall(live.address, provider);
    if (waitMs === 0) return true;
    await deps.clock.sleep(waitMs, AbortSignal.any([lease.signal, deps.stopping]));
    if (lease.signal.aborted) return false;
    if (deps.stopping.aborted) throw deps.stopping.reason;
  }
}
