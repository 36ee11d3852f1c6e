import type { TurnRun } from './turn-run.ts';

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
