import { changed, type Outcome, type TurnRun } from './turn-run.ts';

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
