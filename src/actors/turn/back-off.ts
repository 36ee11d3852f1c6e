import type { FailedCall, Outcome, TurnRun } from './turn-run.ts';
import { policyOf } from '../../errors.ts';
import { backoffMs } from '../../providers/backoff.ts';
import type { ModelFailure } from '../../providers/provider.ts';

/** Waits before the next try of the same request; the lease is renewed meanwhile. A restart begins the count again. */
export async function backOff(run: TurnRun): Promise<Outcome> {
  const { deps, failure, lease } = run;
  if (!failure) return { event: { type: 'RETRY_DUE' } };
  // A stopping process does not wait: its successor starts the step again.
  await deps.clock.sleep(failure.wait?.ms ?? 0, AbortSignal.any([lease.signal, deps.stopping]));
  if (lease.signal.aborted) return { event: { type: 'ABORTED' } };
  const { provider } = run.runtime.profile;
  deps.metrics.count('model_retries', { provider, code: failure.code });
  return { event: { type: 'RETRY_DUE' }, changes: { ending: { kind: 'done' } } };
}

/**
 * Whether and when a failed call is made again. The machine counts tries that a server has answered. A server that is away
 * may be restarting or loading a model: it is retried until `patienceMs` is over, with the last try at its end.
 */
export function planRetry(run: TurnRun, failure: ModelFailure): FailedCall {
  const { clock, random } = run.deps;
  const { patienceMs } = run.runtime;
  const before = run.failure;
  const tries = (before?.tries ?? 0) + 1;
  const now = clock.now();
  const isAway = failure.isAway === true && policyOf(failure.code) === 'retry' && patienceMs > 0;
  const awayFrom = isAway ? (before?.awayFrom ?? clock.monotonic()) : null;
  const left = awayFrom === null ? Infinity : awayFrom + patienceMs - clock.monotonic();
  const pause = backoffMs(failure, tries, random);
  const ms = pause === null || left <= 0 ? null : Math.min(pause, left);
  const until = isAway ? Math.round(now + left) : null;
  const wait = ms === null ? null : { ms, next: Math.round(now + ms), until };
  const answered = (before?.answered ?? 0) + (isAway ? 0 : 1);
  return { ...failure, tries, answered, since: before?.since ?? now, awayFrom, wait };
}

/** An absence is reported once, and again when the error message changes. */
export function isNewFailure(before: FailedCall | null, { awayFrom, message, wait }: FailedCall): boolean {
  if (awayFrom === null || wait === null) return true;
  return before === null || before.awayFrom === null || before.message !== message;
}

/** Waits for a call to fit the provider's rate limit. Returns false if the turn was stopped meanwhile. */
export async function takeCall({ deps, live, lease }: TurnRun, provider: string): Promise<boolean> {
  for (;;) {
    const waitMs = await deps.admission.takeCall(live.address.tenant, provider);
    if (waitMs === 0) return true;
    await deps.clock.sleep(waitMs, AbortSignal.any([lease.signal, deps.stopping]));
    if (lease.signal.aborted) return false;
    if (deps.stopping.aborted) throw deps.stopping.reason;
  }
}
