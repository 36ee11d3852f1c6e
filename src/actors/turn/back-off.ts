import type { FailedCall, Outcome, TurnRun } from './turn-run.ts';
import { policyOf } from '../../errors.ts';
import { backoffMs } from '../../providers/backoff.ts';
import type { ModelFailure } from '../../providers/provider.ts';

/** Waits before the next try of the same request, while the lease is renewed. A restart starts the count again. */
export async function backOff(run: TurnRun): Promise<Outcome> {
  const { deps, failure, lease } = run;
  if (!failure) return { event: { type: 'RETRY_DUE' } };
  // A process that ends does not wait: the next one starts the step again.
  await deps.clock.sleep(failure.wait?.ms ?? 0, AbortSignal.any([lease.signal, deps.stopping]));
  if (lease.signal.aborted) return { event: { type: 'ABORTED' } };
  const { provider } = run.runtime.profile;
  deps.metrics.count('model_retries', { provider, code: failure.code });
  return { event: { type: 'RETRY_DUE' }, changes: { ending: { kind: 'done' } } };
}

/**
 * Whether and when a failed call is made again. Tries of a server that answers are counted, by the machine. One that is
 * away may be restarting or loading a model: it is waited for by the clock, as long as the agent has patience, and the
 * last try is at the end of it.
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

/** A server that stays away is told once, and again when it says something else. */
export function isNewFailure(before: FailedCall | null, { awayFrom, message, wait }: FailedCall): boolean {
  if (awayFrom === null || wait === null) return true;
  return before === null || before.awayFrom === null || before.message !== message;
}

/** Waits for its place within the provider's rate; false if the turn is to stop meanwhile. */
export async function takeCall({ deps, live, lease }: TurnRun, provider: string): Promise<boolean> {
  for (;;) {
    const waitMs = await deps.admission.takeCall(live.address.tenant, provider);
    if (waitMs === 0) return true;
    await deps.clock.sleep(waitMs, AbortSignal.any([lease.signal, deps.stopping]));
    if (lease.signal.aborted) return false;
    if (deps.stopping.aborted) throw deps.stopping.reason;
  }
}
